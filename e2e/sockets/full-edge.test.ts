import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { RawDevice } from '../lib/device/raw-device.ts'
import { bootDevices } from '../lib/device/simulated-devices.ts'
import { writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { edgeAddress, edgePorts, makeBootFiles, startLoopbackEdge, untilListening } from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const registeredMac = (index: number) => `02:bf:00:00:00:${(index + 1).toString(16).padStart(2, '0')}`
const inventedMac = (index: number) => {
  const [high, low] = [index >> 8, index & 255].map((byte) => byte.toString(16).padStart(2, '0'))
  return `02:ca:00:00:${high}:${low}`
}
const runningCount = 4
const inventedByEach = 2500
/** Half of the table, as docs/guides/operations.md says. */
const sharedBootsMax = 1024
const sectors = 4096

/** Writes a trace of reads that lasts `seconds`. */
function writeTrace(file: string, seconds: number): void {
  const lines = Array.from({ length: seconds * 20 }, (_, index) => `${index * 50},${(index % 64) * 4096},4096`)
  writeFileSync(file, `time_ms,offset,length\n${lines.join('\n')}\n`)
}

test('5,000 made-up MAC addresses disturb no running device, and a registered one boots at once', async () => {
  const ports = await edgePorts()
  const { dhcp: metricsPort } = await edgePorts()
  const files = makeBootFiles(scratch.path, sectors)
  const data = path.join(scratch.path, 'data')
  const version = {
    sizeBytes: sectors * 512,
    diskPath: 'disk',
    kernelPath: 'kernel',
    initrdPath: null,
    commandLine: '',
  }
  const macs = Array.from({ length: runningCount + 1 }, (_, index) => registeredMac(index))
  writeEnrolledEdge(
    data,
    macs,
    macs.map(() => version),
    [],
    undefined,
    { unknownDevices: 'boot' },
  )
  for (const [name, from] of [
    ['disk', files.vdisk],
    ['kernel', files.kernel],
  ] as const)
    writeFileSync(path.join(data, 'store', name), readFileSync(from))
  const more = ['--data', data, '--boot-files', files.bootFiles, '--metrics', String(metricsPort), '--json']
  const edge = await startLoopbackEdge(ports, more)
  await untilListening(edge, metricsPort)

  const simulated = ['--server', edgeAddress, '--dhcp-port', String(ports.dhcp), '--tftp-port', String(ports.tftp)]
  const longTrace = path.join(scratch.path, 'long.csv')
  const shortTrace = path.join(scratch.path, 'short.csv')
  writeTrace(longTrace, 20)
  writeTrace(shortTrace, 1)
  const verify = ['--verify', files.vdisk, '--breather-ms', '1']
  const running = bootDevices([...simulated, '--devices', String(runningCount), '--trace', longTrace, ...verify])
  const page = async () => (await fetch(`http://${edgeAddress}:${metricsPort}/metrics`)).text()
  await expect.poll(page).toContain(`bootfarm_edge_streams_open ${runningCount}\n`)

  const attacker = new RawDevice(edgeAddress, inventedMac(0))
  let scripts = 0
  for (let index = 0; index < inventedByEach; index += 1) {
    attacker.askAs(inventedMac(index), ports.dhcp)
    const url = `http://${edgeAddress}:${ports.http}/m/${inventedMac(inventedByEach + index)}/boot.ipxe`
    const answer = await fetch(url)
    expect([200, 503]).toContain(answer.status)
    const text = await answer.text()
    if (answer.status === 200) scripts += 1
    else expect(text).toMatch(/^This edge has reached its limit of boots in progress: .*register the device/)
  }
  attacker.close()
  expect(scripts).toBeGreaterThan(0)
  expect(scripts).toBeLessThanOrEqual(sharedBootsMax)
  await expect.poll(page).toMatch(/reason="unregistered_limit"\} \d{4}$/m)

  const newcomer = ['--devices', '1', '--first-mac', registeredMac(runningCount), '--trace', shortTrace, ...verify]
  const booted = await bootDevices([...simulated, ...newcomer])
  expect(booted.devices, booted.output).toMatchObject([{ outcome: 'ready' }])
  const ran = await running
  expect(
    ran.devices.map(({ outcome, resumptions }) => [outcome, resumptions]),
    ran.output,
  ).toEqual(Array.from({ length: runningCount }, () => ['ready', 0]))
  expect(ran.exit).toBe(0)
  const booting = /^bootfarm_edge_devices_booting (\d+)/m.exec(await page())?.[1]
  expect(Number(booting ?? Number.NaN)).toBeLessThanOrEqual(sharedBootsMax)
  expect(await edge.stop()).toBe(0)
})
