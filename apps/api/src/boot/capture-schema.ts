import { z } from 'zod'

const uuid = z.uuid()
const count = z.number().int().nonnegative()

/** As long a list as anybody reads; the file has them all. */
export const capturePacketsShownMax = 1000

/** The packets of a boot before its stream, kept as a pcap file. */
export const captureSummary = z.object({ receivedAt: z.iso.datetime(), packetCount: count, sizeBytes: count })

export const bootCaptureInput = z.object({ bootId: uuid })

/** Null where no packets of the boot are kept. */
export const bootCapture = captureSummary
  .extend({
    /** In the file's order, at most `capturePacketsShownMax`. */
    packets: z.array(
      z.object({
        /** µs since the first packet in the file. */
        atUs: z.number().int(),
        /** `other`: neither from nor to the boot's device alone, as far as its addresses say. */
        direction: z.enum(['from_device', 'to_device', 'other']),
        protocol: z.enum(['dhcp', 'tftp', 'http', 'other']),
        /** In words, e.g. `TFTP ACK of block 145`; made of untrusted bytes, printable ASCII alone. */
        what: z.string(),
        /** On the wire. */
        sizeBytes: count,
      }),
    ),
  })
  .nullable()
export type BootCapture = z.infer<typeof bootCapture>
export type CapturedPacket = NonNullable<BootCapture>['packets'][number]
