import type { NetworkReport } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { isBlackHole } from '../rules/device/black-hole.ts'
import { count } from '../rules/scalars.ts'

/** What was measured of the network of a boot, for its page. */

const packets = count.describe('Packets that were sent.')
const lost = count.describe('Of these, those that did not arrive.')

export const networkView = z.object({
  duplex: z.enum(['half', 'full']).nullable().describe("Of the link of the device's network card."),
  mtuBytes: count.nullable().describe('MTU of that card.'),
  linkMbit: count.nullable().describe("Speed of that card's link in Mbit/s, at the end of the boot."),
  carrierChanges: count.describe('How often the link went up or down since the kernel started.'),
  receiveErrors: count.describe('Frames that the card received with errors since the kernel started.'),
  crcErrors: count.describe('Of these, frames with a wrong checksum.'),
  receiveDrops: count.describe('Packets that the card or its driver had no space for, or no use.'),
  sendErrors: count.describe('Frames that the card could not send.'),
  socketDrops: count.describe('Packets of the stream that arrived at the device and found its buffer full.'),
  sizeMaxBytes: count.describe('UDP payload that the cards of edge and device take.'),
  sizeBytes: count.describe('UDP payload that passes between them.'),
  lostSizeBytes: count.nullable().describe('A larger UDP payload that never arrived; null: there is none.'),
  lostSizeCount: count.describe('How many packets of that size were sent.'),
  isBlackHole: z
    .boolean()
    .describe('The network between them takes smaller packets than both cards, and lets larger ones vanish.'),
  toDevice: z
    .object({
      packets,
      lost,
      runs: count.describe('Gaps in the sequence of packets.'),
      runPackets: count.describe('Packets in these gaps.'),
      longestRun: count.describe('Packets in the longest one.'),
    })
    .nullable()
    .describe('Packets from the edge to the device; null: not measured.'),
  fromDevice: z.object({ packets, lost }).nullable().describe('Packets from the device to the edge.'),
  order: z
    .object({
      packets,
      late: count.describe('Of these, those that a later packet overtook.'),
      distance: count.describe('By how many places at most.'),
    })
    .nullable()
    .describe('Order of the packets to the device.'),
  rtt: z
    .object({
      count: count.describe('Round trips that were measured.'),
      minUs: count.describe('The shortest round trip in µs.'),
      p50Us: count.describe('Half of them took this or less.'),
      p95Us: count.describe('95 in 100 took this or less.'),
    })
    .nullable()
    .describe('Round trip between device and edge, without the work of either.'),
})
export type NetworkView = z.infer<typeof networkView>

export function networkViewOf(report: NetworkReport): NetworkView {
  const { duplex = null, mtu = null, linkMbit = null, lostSize = null, size, sizeMax } = report
  const { toDevice = null, fromDevice = null, order = null, rtt = null } = report
  return {
    duplex,
    mtuBytes: mtu,
    linkMbit,
    carrierChanges: report.carrierChanges ?? 0,
    receiveErrors: report.receiveErrors ?? 0,
    crcErrors: report.crcErrors ?? 0,
    receiveDrops: report.receiveDrops ?? 0,
    sendErrors: report.sendErrors ?? 0,
    socketDrops: report.socketDrops ?? 0,
    sizeMaxBytes: sizeMax,
    sizeBytes: size,
    lostSizeBytes: lostSize,
    lostSizeCount: report.lostSizeCount ?? 0,
    isBlackHole: isBlackHole(report),
    toDevice,
    fromDevice,
    order,
    rtt,
  }
}
