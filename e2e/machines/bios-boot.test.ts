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
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
/** How far the edge's times may be from those of a recorder on the switch. */
const outsideToleranceUs = 5_000
const streamHelloType = 1
const streamReadType = 5
const streamReadyType = 9

const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a BIOS machine${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('bios', script, 8 << 20)
    edge = await site.startEdge()
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

    for (const { what, reportedUs, seenUs } of phaseTimes(report, await site.packets())) {
      console.log(`${what}: reported ${reportedUs} µs, seen ${seenUs} µs after the first packet`)
      expect(Math.abs(reportedUs - seenUs), what).toBeLessThan(outsideToleranceUs)
    }
  })
})

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
