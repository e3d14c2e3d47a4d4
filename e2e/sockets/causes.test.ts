import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type BootCause, bootCauses, bootCauseText } from '@bootfarm/proto/boot-phases'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PrintedFailure, printedFailure } from '../lib/assert/printed-failure.ts'
import { packetOf, RawDevice, readRequest } from '../lib/device/raw-device.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { TpmKey } from '../lib/device/tpm-key.ts'
import { type TestVersion, testUuid, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  type EdgePorts,
  edgeAddress,
  edgeFigures,
  edgePorts,
  makeBootFiles,
  patterned,
  serveArguments,
  startLoopbackEdge,
  untilListening,
} from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const scratch = scratchDirectory()
const trace = path.join(scratch.path, 'trace.csv')
writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n10,4096,4096\n')
const running: RunningProcess[] = []
const devices: RawDevice[] = []
const segments: Segment[] = []

/** An edge and the ports at which it serves. */
interface Site {
  edge: RunningProcess
  ports: EdgePorts
}
let site: Site

async function startSite(args: string[]): Promise<Site> {
  const ports = await edgePorts()
  const edge = await startLoopbackEdge(ports, ['--silence-limit', '2', ...args])
  running.push(edge)
  return { edge, ports }
}

/** Starts an edge whose state gives the cause's device a version with a disk that is not in the store. */
async function startEnrolled(
  cause: BootCause,
  more: Partial<DesiredState>,
  given: Partial<TestVersion> = {},
): Promise<Site> {
  const data = path.join(scratch.path, cause)
  mkdirSync(path.join(data, 'store'), { recursive: true })
  const absent = {
    sizeBytes: 512,
    diskPath: 'absent',
    kernelPath: null,
    initrdPath: null,
    commandLine: '',
    ...given,
  }
  writeEnrolledEdge(data, [macOf(cause)], [absent], [], undefined, more)
  return startSite(['--data', data, '--boot-files', path.join(scratch.path, 'boot-files')])
}

/** Signs with another key than it shows. */
class WrongKey extends TpmKey {
  override signed(hello: Parameters<TpmKey['signed']>[0]) {
    const { signature = '' } = new TpmKey().signed(hello)
    return { ...super.signed(hello), signature }
  }
}

/** Every cause has its own device. */
function macOf(cause: BootCause): string {
  return `02:ca:00:00:00:${bootCauses.indexOf(cause).toString(16).padStart(2, '0')}`
}

function device(cause: BootCause): RawDevice {
  const raw = new RawDevice(edgeAddress, macOf(cause))
  devices.push(raw)
  return raw
}

function failureOf(cause: BootCause): Promise<PrintedFailure> {
  return printedFailure(site.edge, macOf(cause))
}

/** Starts a simulated device that misbehaves. */
function simulate(cause: BootCause, at: Site, ...args: string[]): RunningProcess {
  const { dhcp, tftp } = at.ports
  const program = new RunningProcess(simProgram, [
    'boot',
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(dhcp),
    '--tftp-port',
    String(tftp),
    '--first-mac',
    macOf(cause),
    '--trace',
    trace,
    '--breather-ms',
    '1',
    ...args,
  ])
  running.push(program)
  return program
}

/** Starts from a script at its own URL and then reports by HTTP why it fails. */
function says(code: string) {
  return async (cause: BootCause): Promise<PrintedFailure> => {
    const url = `http://${edgeAddress}:${site.ports.http}`
    const script = await (await fetch(`${url}/m/${macOf(cause)}/boot.ipxe`)).text()
    const report = script.match(/ bootfarm\.report=(\S+)/)?.[1]
    await fetch(`${report}/failed`, { method: 'POST', body: `${code} as this device says` })
    return failureOf(cause)
  }
}

/** Makes a boot fail by each cause, and checks the rest of the boot's report. */
const scenarios: Record<BootCause, (cause: BootCause) => Promise<PrintedFailure>> = {
  nbp_not_found: async (cause) => {
    const own = await startEnrolled(cause, { bootProgramSet: 'of-another-site' })
    device(cause).ask(own.ports.dhcp)
    return printedFailure(own.edge, macOf(cause))
  },
  nbp_architecture_mismatch: async (cause) => {
    expect(await device(cause).discover(site.ports.dhcp, 6)).toBe('')
    return failureOf(cause)
  },
  tftp_refused: async (cause) => {
    const raw = device(cause)
    await raw.tftp(site.ports.tftp, readRequest(await raw.discover(site.ports.dhcp)))
    raw.say(site.ports.tftp, packetOf(5, 3, 'no room for it'))
    const failure = await failureOf(cause)
    expect(failure.text).toBe('no room for it')
    expect(failure.whole).toContain('last packet from this edge: TFTP DATA, block 1')
    return failure
  },
  tftp_option_refused: async (cause) => {
    const raw = device(cause)
    const file = await raw.discover(site.ports.dhcp)
    const { opcode } = await raw.tftp(site.ports.tftp, readRequest(file, { blksize: 1400 }))
    expect(opcode).toBe(6)
    raw.say(site.ports.tftp, packetOf(5, 8, 'blocks of 1400 bytes'))
    const failure = await failureOf(cause)
    expect(failure.text).toBe('blocks of 1400 bytes')
    return failure
  },
  tftp_timeout: async (cause) => {
    const raw = device(cause)
    const file = await raw.discover(site.ports.dhcp)
    await raw.tftp(site.ports.tftp, readRequest(file, { blksize: 512, timeout: 1 }))
    await raw.tftp(site.ports.tftp, packetOf(4, 0))
    raw.say(site.ports.tftp, packetOf(4, 1))
    const failure = await failureOf(cause)
    expect(failure.whole).toContain('last packet from the device: TFTP ACK of block 1 after')
    expect(failure.whole).toContain('last packet from this edge: TFTP DATA, block 2 after')
    return failure
  },
  nbp_not_started: async (cause) => {
    const raw = device(cause)
    await raw.download(site.ports.tftp, await raw.discover(site.ports.dhcp))
    raw.ask(site.ports.dhcp)
    return failureOf(cause)
  },
  file_not_found: async (cause) => {
    const file = await device(cause).discover(site.ports.dhcp)
    const url = `http://${edgeAddress}:${site.ports.http}/${file.replace(/[^/]+$/, 'autoexec.ipxe')}`
    expect((await fetch(url)).status).toBe(404)
    const failure = await failureOf(cause)
    expect(failure.text).toBe('autoexec.ipxe')
    expect(failure.whole).toContain('last packet from this edge: HTTP answer 404')
    return failure
  },
  kernel_architecture_mismatch: async (cause) => {
    await device(cause).discover(site.ports.dhcp, 11)
    await fetch(`http://${edgeAddress}:${site.ports.http}/m/${macOf(cause)}/boot.ipxe`)
    return failureOf(cause)
  },
  token_refused: async (cause) => {
    simulate(cause, site, '--misbehave', 'wrong-token')
    return failureOf(cause)
  },
  guest_stopped_reading: async (cause) => {
    simulate(cause, site, '--misbehave', 'stop-reading')
    const failure = await failureOf(cause)
    expect(failure.whole).toMatch(/last packet from this edge: stream DATA at byte \d+ after/)
    return failure
  },
  mac_in_use: async (cause) => {
    const { dhcp: metricsPort } = await edgePorts()
    const own = await startSite([
      ...serveArguments(makeBootFiles(path.join(scratch.path, 'twice'), 64)),
      '--metrics',
      String(metricsPort),
    ])
    await untilListening(own.edge, metricsPort)
    const long = path.join(scratch.path, 'long.csv')
    writeFileSync(
      long,
      `time_ms,offset,length\n${Array.from({ length: 400 }, (_, i) => `${i * 100},0,4096`).join('\n')}\n`,
    )
    const first = simulate(cause, own, '--trace', long)
    while ((await edgeFigures(metricsPort)).bootfarm_edge_streams_open !== 1) expect(first.isRunning).toBe(true)
    const second = simulate(cause, own)
    await own.edge.waitFor(/: two machines have this MAC address: one runs at \S+, and another one starts/)
    await second.stop()
    expect(first.isRunning, first.output).toBe(true)
    return printedFailure(own.edge, macOf(cause))
  },
  identity_refused: async (cause) => {
    const mac = macOf(cause)
    const machine = await StreamDevice.boot(`http://${edgeAddress}:${site.ports.http}`, mac, { key: new WrongKey() })
    expect(await machine.hello()).toBe('identity_refused')
    machine.close()
    const failure = await failureOf(cause)
    expect(failure.text).toBe('the signature of its key is wrong, and its boot is refused')
    return failure
  },
  kernel_mismatch: says('wrong_kernel'),
  kernel_without_nbd: says('no_nbd'),
  stream_unreachable: says('no_stream'),
  disk_truncated: says('disk_short'),
  root_not_found: says('no_root'),
  write_cache_full: says('cache_full'),
  write_cache_lost: says('cache_lost'),
  write_cache_of_another_version: says('cache_other'),
  write_cache_unusable: says('cache_failed'),
  write_cache_disk_unusable: says('cache_disk'),
  guest_reported_failure: says('my_own_code'),
  writes_at_another_edge: async (cause) => {
    const homeEdges = [{ id: testUuid(9), name: 'north' }]
    const writeCache = { class: 'private', full: 'stop' as const }
    const own = await startEnrolled(cause, { homeEdges }, { home: 0, writeCache })
    device(cause).ask(own.ports.dhcp)
    const failure = await printedFailure(own.edge, macOf(cause))
    expect(failure.text).toBe('its writes are kept at the edge north')
    return failure
  },
  version_missing: async (cause) => {
    const own = await startEnrolled(cause, {})
    device(cause).ask(own.ports.dhcp)
    return printedFailure(own.edge, macOf(cause))
  },
  store_read_error: async (cause) => {
    const disk = path.join(scratch.path, 'shrinking.raw')
    writeFileSync(disk, patterned(64 * 512))
    const own = await startSite([
      '--vdisk',
      disk,
      '--kernel',
      path.join(scratch.path, 'kernel'),
      '--boot-files',
      path.join(scratch.path, 'boot-files'),
    ])
    truncateSync(disk, 512)
    simulate(cause, own)
    return printedFailure(own.edge, macOf(cause))
  },
  address_pool_exhausted: async (cause) => {
    const own = await startSite([
      ...serveArguments(makeBootFiles(path.join(scratch.path, 'pool'), 64)),
      '--dhcp-pool',
      '127.77.1.10-127.77.1.11',
    ])
    for (const last of ['e1', 'e2']) {
      const other = new RawDevice(edgeAddress, `02:ca:00:00:01:${last}`)
      devices.push(other)
      await other.discover(own.ports.dhcp)
    }
    device(cause).ask(own.ports.dhcp)
    return printedFailure(own.edge, macOf(cause))
  },
  path_mtu_black_hole: async (cause) => {
    const { segment, edge } = await startOnSegment('hole')
    segment.addDeviceAddress(100)
    segment.dropLargerThan(1000)
    const program = path.resolve(import.meta.dirname, '../lib/device/black-hole-device.ts')
    running.push(segment.startOnSwitch(process.execPath, [program, segment.edgeIp, macOf(cause)]))
    const failure = await printedFailure(edge, macOf(cause))
    expect(failure.text).toBe('TFTP blocks of 1468 bytes are not acknowledged')
    return failure
  },
  other_offer_won: async (cause) => {
    const { segment, edge } = await startOnSegment('won')
    segment.addSwitchAddress()
    const dhcp = segment.startDhcpServer([`--dhcp-boot=pxelinux.0,other,${segment.dhcpIp}`, '--dhcp-broadcast'])
    running.push(dhcp)
    await dhcp.waitFor(/DHCP, IP range/)
    const device = ['--first-mac', macOf(cause), '--interface', segment.deviceInterface, '--misbehave', 'dhcp-only']
    running.push(segment.startOnSwitch(simProgram, ['boot', '--server', segment.edgeIp, ...device]))
    return printedFailure(edge, macOf(cause))
  },
}

/** Starts an edge with proxyDHCP on a segment for one cause alone. */
async function startOnSegment(name: string): Promise<{ segment: Segment; edge: RunningProcess }> {
  const segment = new Segment(name)
  segments.push(segment)
  const files = serveArguments(makeBootFiles(path.join(scratch.path, name), 64))
  const edge = segment.startOnEdge(edgeProgram, [
    'serve',
    '--listen',
    segment.edgeIp,
    '--dhcp',
    'proxy',
    '--silence-limit',
    '2',
    ...files,
  ])
  running.push(edge)
  await edge.waitFor(/serving on/)
  return { segment, edge }
}

/** Why a cause cannot be produced here; undefined where it can. */
function missingFor(cause: BootCause): string | undefined {
  if (cause === 'path_mtu_black_hole') return namespacesMissing()
  if (cause === 'other_offer_won') return namespacesMissing(['dnsmasq-base'])
  return undefined
}

describe('every cause of a failed boot', () => {
  beforeAll(async () => {
    site = await startSite(serveArguments(makeBootFiles(scratch.path, 64)))
  })
  afterAll(async () => {
    for (const raw of devices) raw.close()
    await Promise.all(running.map((process) => process.stop()))
    for (const segment of segments) segment.remove()
    scratch.remove()
  })

  test.concurrent.for([...bootCauses])('%s is produced, and reported with its sentence', async (cause, { skip }) => {
    const missing = missingFor(cause)
    if (missing) skip(missing)
    const failure = await scenarios[cause](cause)
    expect(failure.cause, failure.whole).toBe(cause)
    const { sentence, remedy } = bootCauseText(cause)
    expect(failure.whole).toContain(`  ${sentence}\n  ${remedy}\n`)
  })
})
