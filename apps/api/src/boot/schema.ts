import { bootCauses, bootPhases, listedOutcomes, valueSources } from '@bootfarm/proto/boot-phases'
import {
  type GuestReport,
  guestStepGroups,
  loaderStepNames,
  powerOrders,
  storageKinds,
  streamCiphers,
  transferOutcomes,
  transferProtocols,
} from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { deviceKeyLabel } from '../rules/device/device-key.ts'
import { deviceState } from '../rules/device/device-state.ts'
import { deviceWait } from '../rules/device/device-wait.ts'
import { writeCacheView } from '../rules/device/write-cache.ts'
import { countOrNull, instantOf, listSort, textOrNull } from '../rules/list-sort.ts'
import { pageInput, pageOf } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'
import { instantAt } from './boot-times.ts'
import { networkView } from './network-view.ts'
import { readTimesView } from './read-times.ts'

/** A list as long as anybody reads; the file has all of them. */
export const capturePacketsShownMax = 1000

/** The packets of a boot before its stream, kept as a pcap file. */
const captureSummary = z.object({ receivedAt: z.iso.datetime(), packetCount: count, sizeBytes: count })

export const bootCaptureInput = z.object({ bootId: uuid })

/** Null where no packets of the boot are kept. */
export const bootCapture = captureSummary
  .extend({
    packets: z
      .array(
        z.object({
          atUs: z.number().int().describe('µs since the first packet in the file.'),
          direction: z
            .enum(['from_device', 'to_device', 'other'])
            .describe("`other`: according to its addresses, neither from nor to the boot's device alone."),
          protocol: z.enum(['dhcp', 'tftp', 'http', 'other']),
          what: z
            .string()
            .describe('In words, e.g. `TFTP ACK of block 145`; derived from untrusted bytes, printable ASCII only.'),
          sizeBytes: count.describe('On the wire.'),
        }),
      )
      .describe("In the file's order, at most `capturePacketsShownMax`."),
  })
  .meta({ id: 'BootCapture' })
  .nullable()
export type BootCapture = z.infer<typeof bootCapture>
export type CapturedPacket = NonNullable<BootCapture>['packets'][number]

export const consoleLinesMax = 2000
export const consoleBytesMax = 200 * 1024

export const bootConsoleInput = z.object({
  bootId: z.uuid(),
  after: z
    .number()
    .int()
    .nonnegative()
    .optional()
    .describe('`next` of the previous answer; without it, from the start of the boot.'),
})

/** Null where no console is kept for the boot's device. */
export const bootConsole = z
  .object({
    lines: z.array(
      z.object({
        atMs: z
          .number()
          .int()
          .describe('Milliseconds since the start of the boot; negative for firmware output before its first packet.'),
        text: z.string().describe('Untrusted, without control characters.'),
      }),
    ),
    next: z.number().int().nonnegative(),
    more: z.boolean().describe('There is more of this boot behind `next` now: an answer is bounded.'),
    over: z
      .boolean()
      .describe('The device has begun its next boot: nothing comes any more. Until then it may write at any time.'),
  })
  .meta({ id: 'BootConsole' })
  .nullable()
export type BootConsole = z.infer<typeof bootConsole>

const microseconds = z.number().int()

/** A device's own report: its texts are untrusted. */
const guestView = z.object({
  kernelStartUs: microseconds.describe(
    "Start of the kernel's clock, in µs since the start of the boot; inferred by the edge.",
  ),
  steps: z
    .array(
      z.object({
        group: z.enum(guestStepGroups),
        name: z.string(),
        startUs: microseconds.describe('µs since the start of the boot, like the phases.'),
        durationUs: z.number().int().nonnegative(),
      }),
    )
    .describe("By start. Steps of the firmware start before the boot's first packet, below 0."),
  writeCacheAt: z.iso
    .datetime()
    .nullable()
    .describe('When the device reported the fill level of its write cache; null if it never did.'),
})
type GuestView = z.infer<typeof guestView>

/** @param startedAt the start of the boot */
export function guestViewOf(guest: GuestReport, startedAt: Date): GuestView {
  const { kernelStartUs, steps, writeCache } = guest
  return {
    kernelStartUs,
    steps: steps
      .map((step) => ({ ...step, startUs: exact(kernelStartUs + step.startUs) }))
      .sort((a, b) => a.startUs - b.startUs),
    writeCacheAt: writeCache ? instantAt(startedAt, writeCache.atUs) : null,
  }
}

/** Two numbers of a device may add up to more than JSON keeps exact. */
function exact(us: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, us))
}

const bootPhaseView = z.object({
  name: z.enum(bootPhases),
  startUs: count.describe('µs since the start of the boot.'),
  durationUs: count.nullable().describe('Null while the phase lasts.'),
  source: z.enum(valueSources),
  bytesIn: count,
  bytesOut: count,
  packetsIn: count,
  packetsOut: count,
  retries: count,
  missingFragments: count,
  reads: count,
  readSizes: z.array(count).describe('Index i counts reads of (2^(i+8), 2^(i+9)] bytes, index 0 all up to 512.'),
  gaps: z
    .array(z.object({ atUs: count, durationUs: count }))
    .describe('Silences over 250 ms; `atUs` since the start of the boot.'),
})
export type BootPhaseView = z.infer<typeof bootPhaseView>

/** What a device says that it is. */
const hardwareView = z.object({
  model: z.string().nullable().describe('Vendor and model, as the firmware tells: untrusted text.'),
  processors: count.nullable().describe('Processors that its system may use.'),
  memoryGib: count.nullable().describe('Memory, rounded to GiB.'),
  networkCard: z.string().nullable().describe('Driver and PCI ids of the network card.'),
})

/** A boot as lists and live updates show it. */
export const bootSummary = z
  .object({
    id: uuid,
    deviceId: uuid.nullable(),
    deviceName: z.string().nullable().describe('The registered name; null for a device that is not registered.'),
    mac: z.string(),
    siteId: uuid,
    siteName: z.string(),
    edgeId: uuid,
    edgeName: z.string(),
    startedAt: instant,
    outcome: z.enum(listedOutcomes).nullable().describe('Null while the boot lasts.'),
    failedPhase: z.enum(bootPhases).nullable(),
    failedCause: z.enum(bootCauses).nullable(),
    lastPhase: z.enum(bootPhases).nullable(),
    totalUs: count.describe('From the start of the boot to the end of the last known phase.'),
    bytesOut: count,
    retries: count,
    hardware: hardwareView.describe('Null values: the device did not tell, or not yet.'),
    storage: z.enum(storageKinds).nullable().describe('Kind of storage of the store of its edge.'),
    simulated: z.boolean(),
    generated: z.boolean(),
    menuEntry: z
      .string()
      .nullable()
      .describe('Title of the entry that was taken in the boot menu; null where none was shown.'),
    writeCache: writeCacheView.nullable().describe('Null where the device reported none.'),
    takenPowerOrder: z
      .object({ id: uuid, order: z.enum(powerOrders), takenAt: instant })
      .nullable()
      .describe('The last power order that the device took in this boot.'),
    deviceState: deviceState.describe("The device's current state, according to this boot's reports."),
    waitsFor: deviceWait
      .nullable()
      .describe("Why the device stands still, or may; null for a boot that is not its device's last one, too."),
    reportedAt: instant.describe('When its newest report arrived.'),
    phases: z.array(bootPhaseView.pick({ name: true, startUs: true, durationUs: true })),
  })
  .meta({ id: 'BootSummary' })
export type BootSummary = z.infer<typeof bootSummary>

/** A DHCP offer that was heard on the device's segment; what stands in it is untrusted text. */
const offerView = z.object({
  atUs: count.describe('µs since the start of the boot.'),
  server: z.string(),
  ours: z.boolean().describe('Sent by the edge that reported the boot.'),
  kind: z
    .enum(['address', 'proxy', 'both'])
    .describe('`address` gives one, `proxy` only names the boot program, `both` does both.'),
  yourIp: z.string().nullable(),
  nextServer: z.string().nullable(),
  relay: z.string().nullable(),
  file: z.string().nullable(),
  vendorClass: z.string().nullable(),
})
export type OfferView = z.infer<typeof offerView>

/** A packet in words. `atUs` is µs since the start of the boot. */
const namedPacketView = z.object({ atUs: count, at: instant, what: z.string() })

export const bootDetail = bootSummary
  .extend({
    revision: count,
    receivedAt: instant,
    isLastBoot: z.boolean().describe('No later boot of its device is known.'),
    vdisk: z
      .object({ id: uuid, name: z.string(), versionNumber: count.nullable() })
      .nullable()
      .describe('Null where the edge named none, or it is gone.'),
    experiment: z
      .object({ id: uuid, name: z.string(), settings: z.array(z.string()).describe('`name=value`.') })
      .nullable()
      .describe('The experiment that gave the boot its settings; null: none did.'),
    detailGone: z
      .object({ keptDays: count })
      .nullable()
      .describe(
        "Set once the boot's detail is past its retention: of phases only their times are left, and no facts, offers, packets and steps.",
      ),
    cause: z
      .object({ sentence: z.string(), remedy: z.string(), deviceText: z.string().nullable() })
      .nullable()
      .describe("The cause in people's words; only if the outcome is `failed`."),
    facts: z
      .object({
        machineId: z.string().nullable(),
        clientArch: count.nullable(),
        vendorClass: z.string().nullable(),
        userClass: z.string().nullable(),
        ip: z.string().nullable(),
        mtuBytes: count.nullable(),
        cipher: z
          .enum(streamCiphers)
          .nullable()
          .describe('The cipher of its stream; null before it was open, and from older edges.'),
        deviceKey: deviceKeyLabel
          .nullable()
          .describe('How its edge judged the key of its TPM; null before the stream was open, and from older edges.'),
        machine: z
          .object({
            processors: count.describe('Processors that its system may use.'),
            memoryMib: count.describe('Memory in MiB, without what firmware and kernel keep.'),
            card: z.string().nullable().describe('PCI ids of the network card that reaches the edge: vendor:device.'),
            driver: z.string().nullable().describe('Driver of that card.'),
            linkMbit: count.nullable().describe("Speed of the card's link in Mbit/s."),
            model: z.string().nullable().describe('Vendor and model, as the firmware tells.'),
          })
          .nullable()
          .describe('What the device says that it is; null before its first report, and from older devices and edges.'),
        network: networkView.nullable().describe('The network between device and edge; null: nothing was measured.'),
        storage: z
          .enum(storageKinds)
          .nullable()
          .describe('Kind of storage of the store of its edge; null if the edge does not know.'),
        reconnects: count,
        program: z
          .object({ set: z.string(), file: z.string() })
          .nullable()
          .describe('The first boot program that the device was given.'),
      })
      .describe("The machine's own report: untrusted text."),
    handOver: z
      .object({
        edgeId: uuid,
        edgeName: z.string(),
        at: instant,
        atUs: count,
        fromEdgeName: z.string().nullable(),
        count,
      })
      .nullable()
      .describe(
        'Null if the boot ended at the edge where it started; otherwise the edge to which its device failed over last.',
      ),
    routerWait: z
      .object({
        atUs: count.describe('Since the start of the boot.'),
        durationUs: count,
        solicitations: count.describe(
          'Router solicitations of the device that the edge heard in it; 0: inferred from the length of the pause.',
        ),
      })
      .nullable()
      .describe("The loader's wait for an IPv6 router; null: there was none, or the edge is too old to report it."),
    loaderSteps: z
      .array(
        z.object({
          name: z.enum(loaderStepNames),
          startUs: count.describe('µs since the start of the boot.'),
          durationUs: count.nullable().describe('Null while it lasts, and if its end was never observed.'),
        }),
      )
      .describe(
        "The loader's own DHCP exchange and its downloads, each from its first packet to its last byte; empty without a loader, and from older edges.",
      ),
    bootCommandUs: count
      .nullable()
      .describe(
        "When the loader's script reached the start of the kernel, in µs since the start of the boot; null: its loader cannot say it, or its edge is too old.",
      ),
    transfers: z
      .array(
        z.object({
          name: z.string().describe("The file's name as the device requested it: untrusted text."),
          protocol: z.enum(transferProtocols).describe('How the device loaded it.'),
          startUs: count.describe('The first request, in µs since the start of the boot.'),
          durationUs: count.describe('From the first request to the last packet of the last one.'),
          bytes: count.describe('Of the file; what was sent again counts once.'),
          retransmitted: count.describe('Blocks of TFTP or segments of TCP that were sent again.'),
          requests: count.describe('Requests of this file by this protocol.'),
          outcome: z
            .enum(transferOutcomes)
            .nullable()
            .describe('Of the last request; null while it lasts, and if its end was never observed.'),
        }),
      )
      .describe(
        'The files that the device loaded before its stream, in order of their first request; empty without any, and from older edges.',
      ),
    transfersLeftOut: count.describe('Requests beyond the limit of the edge, which `transfers` does not list.'),
    series: z
      .object({
        widthUs: count.describe('Item i of each list begins i widths after the start of the boot.'),
        bytes: z.array(count).describe('Sent by the edge.'),
        retransmissions: z.array(count).describe('Of any protocol.'),
        reads: z.array(count).describe('The most disk reads at a time that had arrived and were not answered yet.'),
      })
      .nullable()
      .describe('What the edge sent over time, in lists of one length; null if nothing, or from older edges.'),
    readAhead: z
      .object({
        hadProfile: z.boolean().describe('There was a boot profile for the device when its stream opened.'),
        askedBytes: count,
        usedBytes: count.describe('The used part of `askedBytes`.'),
        waitedReads: count.describe("Reads that the device's system waited for."),
      })
      .nullable()
      .describe('The result of reading ahead until the boot was over; null without a stream, or from older edges.'),
    readTimes: readTimesView
      .nullable()
      .describe("Where the time of the stream's reads went until the boot was over; null if nothing was measured."),
    offers: z
      .array(offerView)
      .describe('In order of time; empty if the edge heard none, or is too old to report them.'),
    lastPackets: z
      .object({ fromDevice: namedPacketView.nullable(), fromEdge: namedPacketView.nullable() })
      .nullable()
      .describe('The last packet each way of a boot that did not get ready.'),
    capture: captureSummary.nullable().describe('The packets that were kept of it; null where none were.'),
    guest: guestView.nullable().describe('Null until the device has sent a report.'),
    phases: z.array(bootPhaseView),
  })
  .meta({ id: 'Boot' })
export type BootDetail = z.infer<typeof bootDetail>

const clientArchMax = 65_535
/** A boot keeps at most 2^31 MiB. */
const memoryGibMax = 2 ** 21
/** As a device or an edge reported it. */
const exactText = z.string().min(1).max(64)
/** Longer than any retention of boots, and exact in JSON. */
const durationUsMax = 10 * 366 * 86_400 * 1_000_000
const durationUs = z.number().int().min(0).max(durationUsMax)

export const bootSort = listSort(
  {
    startedAt: instantOf('startedAt'),
    durationUs: countOrNull('durationUs'),
    hour: countOrNull('hour'),
    processors: countOrNull('processors'),
    memoryGib: countOrNull('memoryMib'),
    networkCard: textOrNull('networkCard'),
    storage: textOrNull('storage'),
  },
  '-startedAt',
)
export const bootFilterInput = z.object({
  sort: bootSort.input.describe(
    '`durationUs`: time from the start of the boot to its end; a boot in progress has none, and counts as shortest. The orders that follow are by a value, and the newest first among boots of one value.',
  ),
  search: z
    .string()
    .trim()
    .max(64)
    .optional()
    .describe("Part of the device's name or of the MAC address, upper or lower case."),
  outcome: z
    .enum([...listedOutcomes, 'booting', 'unsuccessful'])
    .optional()
    .describe(
      '`booting`: in progress; `unsuccessful`: failed or silent; `no_response`: the device did not answer a power-on.',
    ),
  failedCause: z.enum(bootCauses).optional(),
  deviceId: uuid.optional(),
  collectionId: uuid.optional().describe('Boots of the devices that are in it now.'),
  farmId: uuid.optional(),
  siteId: uuid.optional(),
  edgeId: uuid.optional(),
  vdiskId: uuid.optional(),
  versionId: uuid.optional(),
  origin: z
    .enum(['device', 'simulated', 'generated'])
    .optional()
    .describe("`device`: a real machine; `simulated`: by bootfarm-sim; `generated`: by the demo's history generator."),
  clientArch: count.max(clientArchMax).optional().describe('DHCP option 93, as the firmware sent it: 0 BIOS, 7 UEFI.'),
  reads: z
    .enum(['cold', 'warm'])
    .optional()
    .describe('`cold`: a tenth of its READs or more waited for a disk of the edge; `warm`: fewer.'),
  hour: count.max(23).optional().describe('Only boots that started in this hour of a day, in UTC.'),
  processors: count.min(1).max(65_535).optional().describe('Only boots of devices that have as many.'),
  memoryGib: count.min(1).max(memoryGibMax).optional().describe('Memory of the device, rounded to GiB.'),
  networkCard: exactText.optional().describe('Driver and PCI ids of the network card.'),
  hardwareModel: exactText.optional().describe('Vendor and model of the device, as its firmware tells.'),
  storage: z.enum(storageKinds).optional().describe('Kind of storage of the store of its edge.'),
  edgeRelease: exactText.optional().describe('Release that its edge ran.'),
  segment: z
    .cidrv4()
    .optional()
    .describe('Network of the device’s address.')
    .meta({ examples: ['10.77.0.0/24'] }),
  since: instant.optional(),
  until: instant.optional().describe('Only boots that started before it.'),
  durationUsMin: durationUs.optional().describe('Only boots that are over, and took as long or longer.'),
  durationUsMax: durationUs.optional().describe('Only boots that are over, and took as long or shorter.'),
})
export const bootListInput = bootFilterInput.extend(pageInput)
export const bootPage = pageOf(bootSummary)

export const bootGetInput = z.object({ bootId: uuid })

export const bootChangeInput = z
  .object({
    bootId: uuid.nullish().describe('The boot of an open page, which is also sent whole.'),
    lastEventId: z
      .string()
      .regex(/^\d{1,18}$/)
      .nullish()
      .describe('Set by the client itself when it reconnects; at first what `boot.newestChange` returned.'),
  })
  .optional()

/** What is read after this may be shown without another look, if the live updates then continue after `id`. */
export const newestChangeView = z.object({
  id: z
    .string()
    .nullable()
    .describe('The `lastEventId` to connect with; null for a role of a part of the organization.'),
})

/**
 * `synced` comes first on every connection: read your lists again, later changes follow as `boot`.
 * After a reconnect the changes since `lastEventId` follow it, each boot once with its newest state.
 * With `bootId`, that boot comes as `detail` after `synced` and after each of its changes, or as `withdrawn` if it does
 * not exist.
 */
const bootChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('synced') }),
  z.object({ kind: z.literal('boot'), boot: bootSummary }),
  z.object({ kind: z.literal('detail'), boot: bootDetail }),
  /** It failed over to another edge: this boot no longer exists. */
  z.object({ kind: z.literal('withdrawn'), bootId: uuid }),
  /** Which devices wait at sites is not what it was. */
  z.object({ kind: z.literal('discovered') }),
])
export type BootChange = z.infer<typeof bootChange>
