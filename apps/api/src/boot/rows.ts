import { bootCauseText } from '@bootfarm/proto/boot-phases'
import type {
  BootPhaseReport,
  BootReport,
  GuestReport,
  HandOverReport,
  SeriesReport,
  TransferReport,
} from '@bootfarm/proto/uplink'
import { deviceStateOf } from '../rules/device/device-state.ts'
import { deviceWaitOf } from '../rules/device/device-wait.ts'
import { memoryGibOf } from '../rules/device/memory-size.ts'
import { type WriteCacheView, writeCacheOf } from '../rules/device/write-cache.ts'
import { instantAt } from './boot-times.ts'
import { networkViewOf } from './network-view.ts'
import type { BootRow } from './read-boots.ts'
import { readTimesViewOf } from './read-times.ts'
import { type BootDetail, type BootPhaseView, type BootSummary, guestViewOf, type OfferView } from './schema.ts'

/** A boot's detail as it is kept; `capture` of the packets that were. */
export interface BootDetailParts {
  phases: BootPhaseReport[]
  facts: BootFacts
  guest: GuestReport | null
}

type BootCaptureRow = { receivedAt: Date; packetCount: number; sizeBytes: number } | null

/** The boot's facts as the report brought them, kept as one JSON value. */
export interface BootFacts {
  machineId?: string | undefined
  clientArch?: number | undefined
  vendorClass?: string | undefined
  userClass?: string | undefined
  ip?: string | undefined
  mtu?: number | undefined
  cipher?: BootReport['cipher']
  deviceKey?: BootReport['deviceKey']
  machine?: BootReport['machine']
  network?: BootReport['network']
  reconnects: number
  resumedUs?: number | undefined
  /** Where it failed over last, and from where. */
  handOver?: (HandOverReport & { edgeId: string }) | undefined
  routerWait?: BootReport['routerWait']
  loaderSteps?: BootReport['loaderSteps']
  bootCommandUs?: number | undefined
  transfers?: BootReport['transfers']
  transfersLeftOut?: number | undefined
  series?: BootReport['series']
  program?: BootReport['program']
  readAhead?: BootReport['readAhead']
  readTimes?: BootReport['readTimes']
  offers?: BootReport['offers']
  lastPackets?: BootReport['lastPackets']
}

export function bootSummaryOf(row: BootRow, now: Date): BootSummary {
  const taken = row.takenPowerOrders[0]
  return {
    id: row.id,
    deviceId: row.deviceId,
    deviceName: row.device?.name ?? null,
    mac: row.mac,
    siteId: row.siteId,
    siteName: row.site.name,
    edgeId: row.edgeId,
    edgeName: row.edge.name,
    startedAt: row.startedAt.toISOString(),
    outcome: row.outcome,
    // Only `applyBoot` writes these two, from a report that zod validated against the same lists.
    failedPhase: row.failedPhase as BootSummary['failedPhase'],
    failedCause: row.failedCause as BootSummary['failedCause'],
    lastPhase: row.lastPhase as BootSummary['lastPhase'],
    totalUs: Number(row.totalUs),
    bytesOut: Number(row.bytesOut),
    retries: Number(row.retries),
    hardware: {
      model: row.hardwareModel,
      processors: row.processors,
      memoryGib: row.memoryMib === null ? null : memoryGibOf(row.memoryMib),
      networkCard: row.networkCard,
    },
    // Only `writeBoots` writes it, from a heartbeat that zod validated against the same list.
    storage: row.storage as BootSummary['storage'],
    simulated: row.simulated,
    generated: row.generated,
    menuEntry: row.menuEntry,
    writeCache: writeCacheOfRow(row),
    takenPowerOrder: taken?.takenAt ? { id: taken.id, order: taken.order, takenAt: taken.takenAt.toISOString() } : null,
    deviceState: deviceStateOf(row, now),
    waitsFor: isLastBoot(row) ? waitOfRow(row, now) : null,
    reportedAt: row.updatedAt.toISOString(),
    phases: phasesOf(row).map(({ name, startUs, durationUs }) => ({
      name,
      startUs,
      durationUs: durationUs ?? null,
    })),
  }
}

/** No later boot of its device is known. */
function isLastBoot(row: BootRow): boolean {
  return row.device === null || row.device.lastBootId === row.id
}

export function waitOfRow(row: BootRow, now: Date): BootSummary['waitsFor'] {
  const boot = { ...row, held: row.writeCacheHeld, hasTakenOrder: row.takenPowerOrders.length > 0 }
  return deviceWaitOf({ reported: row.wait, boot: { ...boot, edge: { id: row.edgeId, ...row.edge } }, home: null }, now)
}

/** Null where the device reported none. */
export function writeCacheOfRow(row: {
  writeCacheUsedBytes: bigint | null
  writeCacheSizeBytes: bigint | null
  writeCacheHeld: unknown
}): WriteCacheView | null {
  const { writeCacheUsedBytes: used, writeCacheSizeBytes: size } = row
  if (used === null || size === null) return null
  return writeCacheOf({ usedBytes: Number(used), sizeBytes: Number(size) }, row.writeCacheHeld)
}

interface DetailOptions {
  /** Null once it is past its retention. */
  detail: BootDetailParts | null
  detailKeptDays: number
  capture: BootCaptureRow
  vdisk: BootDetail['vdisk']
  experiment: BootDetail['experiment']
  handOver: BootDetail['handOver']
  now: Date
}

export function bootDetailOf(row: BootRow, options: DetailOptions): BootDetail {
  const { detail, capture, vdisk } = options
  const facts: BootFacts = detail?.facts ?? { reconnects: 0 }
  const summary = bootSummaryOf(row, options.now)
  return {
    ...summary,
    revision: Number(row.revision),
    receivedAt: row.receivedAt.toISOString(),
    isLastBoot: isLastBoot(row),
    vdisk,
    experiment: options.experiment,
    detailGone: detail ? null : { keptDays: options.detailKeptDays },
    cause: summary.failedCause ? { ...causeOf(summary.failedCause), deviceText: row.failedText } : null,
    facts: {
      machineId: facts.machineId ?? null,
      clientArch: facts.clientArch ?? null,
      vendorClass: facts.vendorClass ?? null,
      userClass: facts.userClass ?? null,
      ip: facts.ip ?? null,
      mtuBytes: facts.mtu ?? null,
      cipher: facts.cipher ?? null,
      deviceKey: facts.deviceKey?.label ?? null,
      machine: machineOf(facts),
      network: facts.network ? networkViewOf(facts.network) : null,
      storage: summary.storage,
      reconnects: facts.reconnects,
      program: facts.program ?? null,
    },
    handOver: options.handOver,
    routerWait: facts.routerWait ?? null,
    loaderSteps: (facts.loaderSteps ?? []).map((step) => ({ ...step, durationUs: step.durationUs ?? null })),
    bootCommandUs: facts.bootCommandUs ?? null,
    transfers: (facts.transfers ?? []).map(transferView),
    transfersLeftOut: facts.transfersLeftOut ?? 0,
    series: facts.series ? seriesView(facts.series) : null,
    readAhead: facts.readAhead ?? null,
    readTimes: facts.readTimes ? readTimesViewOf(facts.readTimes) : null,
    offers: (facts.offers ?? []).map(offerView),
    lastPackets: lastPacketsOf(facts, row.startedAt),
    capture: capture && { ...capture, receivedAt: capture.receivedAt.toISOString() },
    guest: detail?.guest ? guestViewOf(detail.guest, row.startedAt) : null,
    phases: detail ? detail.phases.map(phaseView) : phasesOf(row).map(phaseOfSummary),
  }
}

function machineOf({ machine }: BootFacts): BootDetail['facts']['machine'] {
  if (!machine) return null
  const { processors, memoryMib, card = null, driver = null, linkMbit = null, model = null } = machine
  return { processors, memoryMib, card, driver, linkMbit, model }
}

/** Only the times are known of a phase whose detail is gone. */
function phaseOfSummary({ name, startUs, durationUs }: BootPhaseTimes): BootPhaseView {
  return {
    name,
    startUs,
    durationUs: durationUs ?? null,
    source: 'observed',
    bytesIn: 0,
    bytesOut: 0,
    packetsIn: 0,
    packetsOut: 0,
    retries: 0,
    missingFragments: 0,
    reads: 0,
    readSizes: [],
    gaps: [],
  }
}

function offerView(offer: NonNullable<BootReport['offers']>[number]): OfferView {
  const { yourIp = null, nextServer = null, relay = null, file = null, vendorClass = null } = offer
  return { ...offer, yourIp, nextServer, relay, file, vendorClass }
}

function transferView(transfer: TransferReport): BootDetail['transfers'][number] {
  const { retransmitted = 0, requests = 1, outcome = null } = transfer
  return { ...transfer, retransmitted, requests, outcome }
}

/** Lists of one length: an edge leaves out those that are all zeros. */
function seriesView({ widthUs, bytes, retransmissions, reads }: SeriesReport): BootDetail['series'] {
  const zeros = (bytes ?? retransmissions ?? reads ?? []).map(() => 0)
  if (zeros.length === 0) return null
  return { widthUs, bytes: bytes ?? zeros, retransmissions: retransmissions ?? zeros, reads: reads ?? zeros }
}

function lastPacketsOf({ lastPackets }: BootFacts, startedAt: Date): BootDetail['lastPackets'] {
  if (!lastPackets?.fromDevice && !lastPackets?.fromEdge) return null
  const named = (packet: { atUs: number; what: string } | undefined) =>
    packet ? { ...packet, at: instantAt(startedAt, packet.atUs) } : null
  return { fromDevice: named(lastPackets.fromDevice), fromEdge: named(lastPackets.fromEdge) }
}

function causeOf(name: NonNullable<BootSummary['failedCause']>): { sentence: string; remedy: string } {
  const { sentence, remedy } = bootCauseText(name)
  return { sentence, remedy }
}

/** The part of a phase that its boot's summary keeps. */
type BootPhaseTimes = Pick<BootPhaseReport, 'name' | 'startUs' | 'durationUs'>

function phasesOf(row: { phases: unknown }): BootPhaseTimes[] {
  return row.phases as BootPhaseTimes[]
}

function phaseView(phase: BootPhaseReport): BootPhaseView {
  return {
    ...phase,
    durationUs: phase.durationUs ?? null,
    readSizes: phase.readSizes ?? [],
    gaps: phase.gaps ?? [],
  }
}
