import { z } from 'zod'
import { count, instant, uuid } from '../rules/scalars.ts'
import { faultKinds } from './find-faults.ts'
import { bootsMin } from './path-figures.ts'
import { measuredMax } from './read-measured-boots.ts'

export const spanDaysMax = 92
export const spanDaysDefault = 30
export const pathsMax = 500
export const faultDevicesMax = 10
export const faultBootsMax = 5

export const networkReportInput = z.object({
  siteId: uuid.optional().describe('Only boots of this site.'),
  since: instant
    .optional()
    .describe(`Only boots that started then or later; by default the last ${spanDaysDefault} days.`),
  until: instant.optional().describe(`And before this. At most ${spanDaysMax} days after \`since\`.`),
})

const share = z.number().min(0).max(1)
const ratio = z
  .object({
    packets: count.describe('Packets of these boots.'),
    lost: count.describe('Those that were lost, or came late.'),
    share: share.describe('Their part of all.'),
    low: share.describe('The true share lies between this and `high` in 95 of 100 cases, by the spread between boots.'),
    high: share.describe('See `low`.'),
  })
  .nullable()

const link = z.object({
  linkMbit: count.nullable().describe('Speed in Mbit/s; null: unknown.'),
  duplex: z.enum(['half', 'full']).nullable().describe('Null: unknown.'),
  deviceCount: count.describe('Devices whose newest boot had this link.'),
})

const fault = z.object({
  kind: z.enum(faultKinds).describe('What is wrong.'),
  severity: z.enum(['fault', 'notice']).describe('`notice`: not a fault of the network.'),
  text: z.string().describe('What was measured, in one sentence.'),
  check: z.string().describe("What the network's owners can check."),
  bootCount: count.describe('Boots that show it.'),
  bootIds: z.array(uuid).describe(`The newest of them, at most ${faultBootsMax}.`),
  deviceCount: count.describe('Devices of these boots.'),
  devices: z
    .array(
      z.object({
        id: uuid.nullable().describe('Null: not registered.'),
        mac: z.string().describe('MAC address.'),
        name: z.string().nullable().describe('Null: not registered, or gone.'),
      }),
    )
    .describe(`The first of them, at most ${faultDevicesMax}.`),
})

export const networkReportView = z
  .object({
    since: instant,
    until: instant,
    bootCount: count.describe('Boots whose network was measured.'),
    isCut: z.boolean().describe(`There are more boots: these are the newest ${measuredMax}.`),
    bootsMin: count.describe(`With fewer boots, nothing is claimed of packets: ${bootsMin}.`),
    otherPaths: count.describe(`Paths beyond the first ${pathsMax}.`),
    paths: z
      .array(
        z.object({
          siteId: uuid.describe('Identifies the site.'),
          siteName: z.string().nullable().describe('Null: the site is gone.'),
          segment: z.string().nullable().describe('IPv4 network of 256 addresses; null: the device had no address.'),
          card: z.string().nullable().describe('Driver and PCI ids of the network card; null: unknown.'),
          bootCount: count.describe('Boots whose network was measured.'),
          deviceCount: count.describe('Devices of these boots.'),
          toDevice: ratio.describe('Loss from edge to device; null: not measured.'),
          fromDevice: ratio.describe('Loss from device to edge; null: not measured.'),
          reordering: ratio.describe('Packets that a later one overtook, of those to the devices.'),
          rtt: z
            .object({
              p50Us: count.describe("Median of the boots' median round trips."),
              p95Us: count.describe("Median of the boots' 95th percentiles."),
            })
            .nullable()
            .describe('Round trip; null: not measured.'),
          tftp: z
            .array(
              z.object({
                blockSize: count.describe('Bytes of a block.'),
                packets: count.describe('Blocks that were sent.'),
                lost: count.describe('Blocks that were sent more than once.'),
                share: share.describe('Their part of all.'),
                low: share.describe('As for packets.'),
                high: share.describe('As for packets.'),
              }),
            )
            .describe('Blocks of TFTP by their size, the largest first.'),
          links: z
            .array(link)
            .describe('Speeds and duplex of the newest boot of each device, the most frequent first.'),
          faults: z.array(fault).describe('What is certain enough to act on, the gravest first.'),
        }),
      )
      .describe('Segments and cards, the worst first.'),
  })
  .meta({ id: 'NetworkReport' })
export type NetworkReportView = z.infer<typeof networkReportView>
