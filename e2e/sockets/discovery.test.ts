import dgram from 'node:dgram'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { DiscoveredDevice } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, expect, test } from 'vitest'
import { reservedKib, slabsKib } from '../lib/assert/memory.ts'
import { readReportLog } from '../lib/edge/edge-data.ts'
import { writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { type EdgePorts, edgeAddress, edgePorts, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const known = '02:bf:00:00:0b:01'
const ignored = '02:bf:00:00:0b:02'
const stranger = '02:bf:00:00:0b:03'
/**
 * Packets a second: fast enough to push a device out of any table of fixed size before its firmware repeats its
 * DISCOVER.
 */
const floodRate = 10_000
const sectors = 64
const scratch = scratchDirectory()
const running: RunningProcess[] = []
let count = 0

afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

/** Starts an enrolled edge that knows one device and ignores another. */
async function startSite(): Promise<{ edge: RunningProcess; data: string; ports: EdgePorts }> {
  const data = path.join(scratch.path, `edge${count++}`)
  const store = path.join(data, 'store')
  const bootFiles = path.join(scratch.path, 'boot-files')
  for (const directory of [store, bootFiles]) mkdirSync(directory, { recursive: true })
  writeFileSync(path.join(bootFiles, 'undionly.kpxe'), patterned(50_000))
  writeFileSync(path.join(store, 'disk'), patterned(sectors * 512))
  writeFileSync(path.join(store, 'kernel'), x86Kernel('6.1.0-53-amd64', patterned(20_000)))
  const version = {
    sizeBytes: sectors * 512,
    diskPath: 'disk',
    kernelPath: 'kernel',
    initrdPath: null,
    commandLine: '',
  }
  writeEnrolledEdge(data, [known], [version], [], undefined, { ignoredMacs: [ignored] })
  const ports = await edgePorts()
  const edge = await startLoopbackEdge(ports, ['--data', data, '--boot-files', bootFiles])
  running.push(edge)
  // All ports are open then, not only that of HTTP.
  await edge.waitFor(/serving on/)
  return { edge, data, ports }
}

function discovered(data: string): DiscoveredDevice[] {
  if (!existsSync(path.join(data, 'reports'))) return []
  return readReportLog(data).flatMap((entry) => (entry.type === 'discovered' ? [entry.device] : []))
}

/** Resolves with the first of these reports; fails when the edge ends first. */
async function untilDiscovered(site: { edge: RunningProcess; data: string }, mac: string) {
  for (;;) {
    const found = discovered(site.data).find((device) => device.mac === mac)
    if (found) return found
    if (!site.edge.isRunning) throw new Error(`the edge ended:\n${site.edge.output}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A DISCOVER of PXE firmware (RFC 2131, RFC 4578) with a host name. */
function discover(mac: string, xid: number, hostName = ''): Buffer {
  const head = Buffer.alloc(240)
  head.set([1, 1, 6, 0])
  head.writeUInt32BE(xid, 4)
  Buffer.from(mac.replaceAll(':', ''), 'hex').copy(head, 28)
  head.set([99, 130, 83, 99], 236)
  const option = (code: number, value: Buffer) => Buffer.concat([Buffer.from([code, value.length]), value])
  return Buffer.concat([
    head,
    option(53, Buffer.from([1])),
    option(60, Buffer.from('PXEClient:Arch:00007:UNDI:003000')),
    option(93, Buffer.from([0, 7])),
    option(97, Buffer.concat([Buffer.from([0]), Buffer.from('33221100554477668899aabbccddeeff', 'hex')])),
    ...(hostName ? [option(12, Buffer.from(hostName, 'latin1'))] : []),
    Buffer.from([255]),
  ])
}

/** Sends packets to the edge's DHCP port, and keeps the answers. */
class Client {
  answers = 0
  readonly #socket = dgram.createSocket('udp4').on('message', () => {
    this.answers += 1
  })

  async send(packet: Buffer, ports: EdgePorts): Promise<void> {
    await new Promise((resolve) => this.#socket.send(packet, ports.dhcp, edgeAddress, resolve))
  }

  close(): void {
    this.#socket.close()
  }
}

test('an unknown device that asks is reported with its own texts, made harmless', async () => {
  const site = await startSite()
  const client = new Client()
  await client.send(discover(ignored, 1), site.ports)
  expect((await fetch(`http://${edgeAddress}:${site.ports.http}/m/${ignored}/boot.ipxe`)).status).toBe(404)
  await client.send(discover(stranger, 2, '<b>lab\n"7"\xff'), site.ports)
  const device = await untilDiscovered(site, stranger)
  expect(device).toMatchObject({
    mac: stranger,
    asked: 'dhcp',
    requests: 1,
    clientArch: 7,
    hostName: '<b>lab?"7"?',
    vendorClass: 'PXEClient:Arch:00007:UNDI:003000',
    machineId: '00112233-4455-6677-8899-aabbccddeeff',
  })
  const byHttp = '02:bf:00:00:0b:04'
  const script = `http://${edgeAddress}:${site.ports.http}/m/${byHttp}/boot.ipxe?from=media&platform=pcbios`
  expect((await fetch(script)).status).toBe(404)
  expect(await untilDiscovered(site, byHttp)).toMatchObject({ asked: 'http', clientArch: 0, ip: edgeAddress })
  // The device asked again within the minute, and the known device does not count.
  await client.send(discover(stranger, 3), site.ports)
  expect((await fetch(`http://${edgeAddress}:${site.ports.http}/m/${known}/boot.ipxe`)).status).toBe(200)
  client.close()
  await site.edge.stop()
  expect(discovered(site.data).map(({ mac }) => mac)).toEqual([stranger, byHttp])
  expect(client.answers).toBe(0)
})

test('a flood of made-up addresses fills no log and takes no new memory, and a real device is still reported', async () => {
  const site = await startSite()
  const client = new Client()
  const flood = async (packets: number, first: number) => {
    for (let number = first; number < first + packets; number++) {
      const mac = `02:f0:${number.toString(16).padStart(8, '0').match(/../g)?.join(':')}`
      await client.send(discover(mac, number), site.ports)
    }
    const dueMs = startedAt + ((first + packets) / floodRate) * 1000 - performance.now()
    await new Promise((resolve) => setTimeout(resolve, Math.max(dueMs, 1)))
  }
  const startedAt = performance.now()
  expect((await fetch(`http://${edgeAddress}:${site.ports.http}/m/${ignored}/boot.ipxe`)).status).toBe(404)
  const before = reservedKib(site.edge.pid)
  await flood(2_000, 0)
  const device = new RunningProcess(simProgram, [
    'boot',
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(site.ports.dhcp),
    '--first-mac',
    stranger,
  ])
  running.push(device)
  let sent = 2_000
  // Its firmware keeps asking; the flood lasts as long.
  const isReported = untilDiscovered(site, stranger).then(() => true)
  while (!(await Promise.race([isReported, flood(1_000, sent).then(() => false)]))) sent += 1_000
  const seconds = (performance.now() - startedAt) / 1000
  expect(reservedKib(site.edge.pid)).toBeLessThanOrEqual(before + slabsKib)
  client.close()
  await device.stop()
  await site.edge.stop()
  const reports = discovered(site.data)
  expect(reports.filter(({ mac }) => mac === stranger)).toHaveLength(1)
  expect(reports.length).toBeLessThanOrEqual(128 + 16 * (seconds + 2))
  expect(sent).toBeGreaterThan(reports.length)
  expect(client.answers).toBe(0)
})
