import type { BootReport } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { macOf } from '../lib/machine.ts'
import { machinesMissing } from '../lib/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/machine-site.ts'
import type { SeenPacket } from '../lib/packets.ts'
import type { RunningProcess } from '../lib/running-process.ts'

const script = `
echo "ROOT $(cut -d' ' -f1 /proc/uptime)"
touch /written && echo "WRITABLE"
echo "BLOB $(md5sum /blob)"
head -c 20971520 /dev/zero >/fill
# It looks every second.
until bootfarm-target status | grep -q '"usedBytes":2[0-9]\\{7\\}'; do sleep 0.2; done
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
/** How far the edge's times may be from those of a recorder on the switch. */
const outsideToleranceUs = 5_000
/** A device's clock in the initramfs counts hundredths of a second. */
const ownToleranceUs = 20_000
const streamHelloType = 1
const streamReadType = 5
const streamReadyType = 9

const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a BIOS machine${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('bios', script, 8 << 20)
    edge = await site.startEdge('proxy', 'bootfarm.overlay=24m')
  })

  afterAll(async () => {
    await site.remove()
  })

  test('boots beside another DHCP server and its phases are reported', async () => {
    const machine = await site.powerOn('bios')
    const [, sum] = await machine.waitFor(/^BLOB (\w{32})/m)
    expect(sum, 'the root disk has the bytes of the image').toBe(site.disk.blobSum)
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(machine.output).toMatch(/^WRITABLE/m)

    const report = await finishedBoot(edge)
    expect(report).toMatchObject({
      mac: macOf(0),
      simulated: false,
      clientArch: 0,
      outcome: { kind: 'ready' },
    })
    const names = report.phases.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['dhcp', 'loader', 'breather', 'stage2', 'ready']))
    const stage2 = report.phases.find(({ name }) => name === 'stage2')
    expect(stage2?.bytesOut, 'the blob went over the stream').toBeGreaterThan(8 << 20)
    for (const phase of report.phases.slice(0, -1)) expect(phase.durationUs, phase.name).toBeDefined()

    expect(machine.output).toMatch(/write cache in RAM is 8\d % full \(2\d of 24 MiB\); at 100 % writes fail/)
    expect(report.guest?.writeCache?.sizeBytes).toBe(24 << 20)
    expect(report.guest?.writeCache?.usedBytes).toBeGreaterThan(0.8 * (24 << 20))
    expectOwnStepsInsidePhases(report)

    for (const { what, reportedUs, seenUs } of phaseTimes(report, await site.packets())) {
      console.log(`${what}: reported ${reportedUs} µs, seen ${seenUs} µs after the first packet`)
      expect(Math.abs(reportedUs - seenUs), what).toBeLessThan(outsideToleranceUs)
    }
  })
})

/** What the machine measured itself: without a gap from its kernel's start until ready, and within what the edge saw. */
function expectOwnStepsInsidePhases({ guest, phases }: BootReport): void {
  const steps = guest?.steps ?? []
  expect(steps.map(({ group, name }) => `${group}: ${name}`)).toEqual([
    'kernel: kernel',
    ...['drivers', 'network', 'disk', 'root', 'overlay', 'hand-over'].map((name) => `initramfs: ${name}`),
    'system: until ready',
  ])
  const ends = steps.map(({ startUs, durationUs }) => startUs + durationUs)
  expect(steps.map(({ startUs }) => startUs)).toEqual([0, ...ends.slice(0, -1)])
  const phase = (name: string) => phases.find((found) => found.name === name)
  const atUs = (own = Number.NaN) => (guest?.kernelStartUs ?? Number.NaN) + own
  const end = (name: string) => (phase(name)?.startUs ?? Number.NaN) + (phase(name)?.durationUs ?? Number.NaN)
  const disk = steps.findIndex(({ name }) => name === 'disk')
  const instants = [
    { what: 'the last byte for the loader', us: end('loader') },
    { what: "the kernel's start", us: atUs(0) },
    { what: 'the begin of disk', us: atUs(steps[disk]?.startUs) },
    { what: 'the first stream packet', us: end('breather') },
    { what: 'the first read', us: phase('stage2')?.startUs ?? Number.NaN },
    { what: 'the end of disk', us: atUs(ends[disk]) },
    { what: 'ready', us: phase('ready')?.startUs ?? Number.NaN },
  ]
  console.log(instants.map(({ what, us }) => `${what}: ${us} µs`).join('\n'))
  for (const [index, { what, us }] of instants.entries()) {
    const before = instants[index - 1]
    if (before) expect(us, `${what} comes after ${before.what}`).toBeGreaterThan(before.us - ownToleranceUs)
  }
}

/** Begin and end of the network phases as the edge reports them and as packets passed the switch. */
function phaseTimes(report: BootReport, packets: SeenPacket[]) {
  const fromMachine = packets.filter(({ sourceMac }) => sourceMac === report.mac)
  const fromEdge = packets.filter(({ sourceIp }) => sourceIp === site.segment.edgeIp)
  const first = fromMachine.find(({ destinationPort }) => destinationPort === 67)?.atUs ?? Number.NaN
  const stream = fromMachine.filter(({ destinationPort }) => destinationPort === 6910)
  const ofType = (type: number) => stream.filter(({ payload }) => ((payload[0] ?? 0) & 0x0f) === type)
  const begin = (name: string) => report.phases.find((phase) => phase.name === name)?.startUs ?? Number.NaN
  const end = (name: string) =>
    begin(name) + (report.phases.find((phase) => phase.name === name)?.durationUs ?? Number.NaN)
  const http = fromMachine.find(
    ({ destinationPort, payloadSize }) => destinationPort === 6980 && payloadSize > 0,
  )
  const dhcp = fromEdge.filter(({ sourcePort, atUs }) => sourcePort === 67 && atUs < (http?.atUs ?? 0)).at(-1)
  return [
    { what: 'end of dhcp', reportedUs: end('dhcp'), packet: dhcp },
    { what: 'begin of loader', reportedUs: begin('loader'), packet: http },
    // The edge keeps nothing of a device before the hello that brings its cookie back, the last one.
    { what: 'end of breather', reportedUs: end('breather'), packet: ofType(streamHelloType).at(-1) },
    { what: 'begin of stage2', reportedUs: begin('stage2'), packet: ofType(streamReadType)[0] },
    { what: 'ready', reportedUs: begin('ready'), packet: ofType(streamReadyType)[0] },
  ].map(({ packet, ...rest }) => ({ ...rest, seenUs: (packet?.atUs ?? Number.NaN) - first }))
}
