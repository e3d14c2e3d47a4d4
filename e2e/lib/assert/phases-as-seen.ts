import type { BootReport } from '@bootfarm/proto/uplink'
import { expect } from 'vitest'
import type { SeenPacket } from '../lab/packets.ts'

/** How far the edge's times may differ from those of a recorder on the switch. */
const toleranceUs = 5_000
const ports = { dhcp: 67, tftp: 69, proxyDhcp: 4011, stream: 6910, http: 6980 }
const streamTypes = { hello: 1, read: 5, ready: 9 }

/**
 * Compares the start and end of each network phase of a ready boot with the packets that passed the switch.
 * packages/proto/boot-phases.json names the packet of each. Returns how far they are from each other, in µs.
 */
export function expectPhasesAsSeen(report: BootReport, packets: SeenPacket[], edgeIp: string): number[] {
  const fromMachine = packets.filter(({ sourceMac }) => sourceMac === report.mac)
  const fromEdge = packets.filter(({ sourceIp }) => sourceIp === edgeIp)
  const firstUs = fromMachine.find(({ destinationPort }) => destinationPort === ports.dhcp)?.atUs ?? Number.NaN
  const phase = (name: string) => report.phases.find((found) => found.name === name)
  const begin = (name: string) => phase(name)?.startUs ?? Number.NaN
  const end = (name: string) => begin(name) + (phase(name)?.durationUs ?? Number.NaN)

  const stream = fromMachine.filter(({ destinationPort }) => destinationPort === ports.stream)
  const ofType = (type: number) => stream.filter(({ payload }) => payload[1] === type)
  const requests = fromMachine.filter(
    ({ destinationPort, payloadSize }) =>
      destinationPort === ports.tftp || (destinationPort === ports.http && payloadSize > 0),
  )
  const hasProgram = phase('nbp') !== undefined
  const dhcp = fromEdge.filter(({ sourcePort }) => [ports.dhcp, ports.proxyDhcp].includes(sourcePort))
  const tftp = fromMachine.filter(({ destinationPort }) => destinationPort === ports.tftp)

  const first = requests[0]
  const instants: [string, number, SeenPacket | undefined][] = [
    ['end of dhcp', end('dhcp'), dhcp.filter(({ atUs }) => atUs < (first?.atUs ?? 0)).at(-1)],
    [hasProgram ? 'begin of nbp' : 'begin of loader', begin(hasProgram ? 'nbp' : 'loader'), first],
    // The edge keeps no state for a device before the HELLO that returns its cookie, which is the last one.
    ['end of breather', end('breather'), ofType(streamTypes.hello).at(-1)],
    ['begin of stage2', begin('stage2'), ofType(streamTypes.read)[0]],
    ['ready', begin('ready'), ofType(streamTypes.ready)[0]],
  ]
  const script = fromMachine.find(
    ({ destinationPort, payload }) =>
      destinationPort === ports.http && /^GET \S*boot\.ipxe/.test(payload.toString('latin1')),
  )
  // Without a script GRUB loads by TFTP what it starts, after itself. Each block is acknowledged, so the last
  // acknowledgement ends a transfer.
  const loaderByTftp = script ? undefined : tftp.find(({ payload }) => isRequestOfOther(payload))
  const programEnd = tftp.filter(({ atUs }) => atUs < (loaderByTftp?.atUs ?? Number.POSITIVE_INFINITY)).at(-1)
  if (hasProgram)
    instants.push(['end of nbp', end('nbp'), programEnd ?? acknowledgementBefore(packets, report.mac, script)])
  const loaderEnd = loaderByTftp ? tftp.at(-1) : acknowledgementBefore(packets, report.mac, stream[0])
  instants.push(['end of loader', end('loader'), loaderEnd])
  const start = requests.find(({ payload }) => isRequestOfStart(payload.toString('latin1')))
  instants.push(['boot command', report.bootCommandUs ?? Number.NaN, start])
  expect(begin('dhcp'), 'begin of dhcp').toBe(0)
  return instants.map(([what, reportedUs, packet]) => {
    const seenUs = (packet?.atUs ?? Number.NaN) - firstUs
    console.log(`${what}: reported ${reportedUs} µs, seen ${seenUs} µs after the first packet`)
    const differenceUs = Math.abs(reportedUs - seenUs)
    expect(differenceUs, what).toBeLessThan(toleranceUs)
    return differenceUs
  })
}

/** By HTTP or TFTP: the last file before the kernel's start. */
function isRequestOfStart(text: string): boolean {
  return /^GET \S*\/start /.test(text) || text.includes('/start\0')
}

/** Whether a packet to the TFTP port asks for a file that is no program of a UEFI (RFC 1350, section 5). */
function isRequestOfOther(payload: Buffer): boolean {
  const [name = ''] = payload.toString('latin1', 2).split('\0')
  return payload.readUInt16BE(0) === 1 && !name.endsWith('.efi')
}

/**
 * Finds the machine's packet that last raised the highest HTTP acknowledgement before another packet: a download ends
 * when the edge knows that it has arrived. That is nearly always its last byte; iPXE under UEFI sometimes starts the
 * kernel without acknowledging the last packets.
 */
function acknowledgementBefore(
  packets: SeenPacket[],
  mac: string,
  limit: SeenPacket | undefined,
): SeenPacket | undefined {
  // Sequence numbers have 32 bits and wrap around.
  const isBehind = (number: number, other: number) => ((other - number) | 0) > 0
  const sent = new Map<number, number>()
  const acknowledged = new Map<number, number>()
  let last: SeenPacket | undefined
  for (const packet of packets) {
    if (packet === limit) return last
    if (packet.sourcePort === ports.http && packet.payloadSize > 0) {
      const packetEnd = packet.sequence + packet.payloadSize
      const known = sent.get(packet.destinationPort)
      if (known === undefined || isBehind(known, packetEnd)) sent.set(packet.destinationPort, packetEnd)
    }
    if (packet.sourceMac !== mac || packet.destinationPort !== ports.http) continue
    if (packet.isSyn) {
      // Boots of one machine reuse ports: what was seen on this one so far belongs to the previous boot.
      sent.delete(packet.sourcePort)
      acknowledged.delete(packet.sourcePort)
    }
    // A reset acknowledges nothing.
    if (packet.isSyn || packet.isReset) continue
    // Only the end of the connection follows the payload.
    const end = sent.get(packet.sourcePort)
    const before = acknowledged.get(packet.sourcePort) ?? packet.acknowledgement - 1
    acknowledged.set(packet.sourcePort, packet.acknowledgement)
    const grows = isBehind(before, packet.acknowledgement)
    if (end !== undefined && grows && isBehind(before, end)) last = packet
  }
  return undefined
}
