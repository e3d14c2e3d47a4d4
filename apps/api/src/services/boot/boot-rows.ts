import type { Prisma } from '@bootfarm/db'
import { bootCauseText } from '@bootfarm/proto/boot-phases'
import type { BootPhaseReport, BootReport, GuestReport } from '@bootfarm/proto/uplink'
import { instantAt } from '../../domain/boot-times.ts'
import type { BootDetail, BootPhaseView, BootSummary, OfferView } from '../../domain/boot-view.ts'
import { deviceStateOf } from '../../domain/device-state.ts'
import { guestViewOf } from '../../domain/guest-view.ts'
import { type WriteCacheView, writeCacheOf } from '../../domain/write-cache.ts'

/** What tells the state of the boot's device now. */
export const deviceStateSelect = {
  startedAt: true,
  updatedAt: true,
  outcome: true,
  totalUs: true,
  generated: true,
  writeCacheUsedBytes: true,
  writeCacheSizeBytes: true,
  takenPowerOrders: {
    orderBy: { takenAt: 'desc' },
    take: 1,
    select: { id: true, order: true, takenAt: true },
  },
  edge: { select: { name: true, heartbeatAt: true, revokedAt: true } },
} satisfies Prisma.BootSelect

export const bootSummarySelect = {
  ...deviceStateSelect,
  id: true,
  deviceId: true,
  mac: true,
  siteId: true,
  edgeId: true,
  failedPhase: true,
  failedCause: true,
  lastPhase: true,
  bytesOut: true,
  retries: true,
  simulated: true,
  menuEntry: true,
  phases: true,
  change: true,
  device: { select: { name: true, lastBootId: true } },
  site: { select: { name: true } },
} satisfies Prisma.BootSelect

export const bootDetailSelect = {
  ...bootSummarySelect,
  revision: true,
  receivedAt: true,
  failedText: true,
  vdiskId: true,
  versionId: true,
  facts: true,
  guest: true,
  capture: { select: { receivedAt: true, packetCount: true, sizeBytes: true } },
} satisfies Prisma.BootSelect

export type BootSummaryRow = Prisma.BootGetPayload<{ select: typeof bootSummarySelect }>
export type BootDetailRow = Prisma.BootGetPayload<{ select: typeof bootDetailSelect }>

/** The boot's facts as the report brought them, kept as one JSON value. */
export interface BootFacts {
  machineId?: string | undefined
  clientArch?: number | undefined
  vendorClass?: string | undefined
  userClass?: string | undefined
  ip?: string | undefined
  mtu?: number | undefined
  reconnects: number
  program?: BootReport['program']
  offers?: BootReport['offers']
  lastPackets?: BootReport['lastPackets']
}

export function bootSummaryOf(row: BootSummaryRow, now: Date): BootSummary {
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
    // Only `applyBoot` writes these two, from a report that zod held against the same lists.
    failedPhase: row.failedPhase as BootSummary['failedPhase'],
    failedCause: row.failedCause as BootSummary['failedCause'],
    lastPhase: row.lastPhase as BootSummary['lastPhase'],
    totalUs: Number(row.totalUs),
    bytesOut: Number(row.bytesOut),
    retries: Number(row.retries),
    simulated: row.simulated,
    generated: row.generated,
    menuEntry: row.menuEntry,
    writeCache: writeCacheOfRow(row),
    takenPowerOrder: taken?.takenAt
      ? { id: taken.id, order: taken.order, takenAt: taken.takenAt.toISOString() }
      : null,
    deviceState: deviceStateOf(row, now),
    reportedAt: row.updatedAt.toISOString(),
    phases: phasesOf(row).map(({ name, startUs, durationUs }) => ({
      name,
      startUs,
      durationUs: durationUs ?? null,
    })),
  }
}

/** Null where the device reported none. */
export function writeCacheOfRow(row: {
  writeCacheUsedBytes: bigint | null
  writeCacheSizeBytes: bigint | null
}): WriteCacheView | null {
  const { writeCacheUsedBytes: used, writeCacheSizeBytes: size } = row
  return used === null || size === null ? null : writeCacheOf(Number(used), Number(size))
}

export function bootDetailOf(
  row: BootDetailRow,
  { vdisk, now }: { vdisk: BootDetail['vdisk']; now: Date },
): BootDetail {
  const facts = row.facts as unknown as BootFacts
  const guest = row.guest as unknown as GuestReport | null
  const summary = bootSummaryOf(row, now)
  return {
    ...summary,
    revision: Number(row.revision),
    receivedAt: row.receivedAt.toISOString(),
    isLastBoot: row.device === null || row.device.lastBootId === row.id,
    vdisk,
    cause: summary.failedCause ? { ...causeOf(summary.failedCause), deviceText: row.failedText } : null,
    facts: {
      machineId: facts.machineId ?? null,
      clientArch: facts.clientArch ?? null,
      vendorClass: facts.vendorClass ?? null,
      userClass: facts.userClass ?? null,
      ip: facts.ip ?? null,
      mtuBytes: facts.mtu ?? null,
      reconnects: facts.reconnects,
      program: facts.program ?? null,
    },
    offers: (facts.offers ?? []).map(offerView),
    lastPackets: lastPacketsOf(facts, row.startedAt),
    capture: row.capture && { ...row.capture, receivedAt: row.capture.receivedAt.toISOString() },
    guest: guest && guestViewOf(guest, row.startedAt),
    phases: phasesOf(row).map(phaseView),
  }
}

function offerView(offer: NonNullable<BootReport['offers']>[number]): OfferView {
  const { yourIp = null, nextServer = null, relay = null, file = null, vendorClass = null } = offer
  return { ...offer, yourIp, nextServer, relay, file, vendorClass }
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

function phasesOf(row: { phases: unknown }): BootPhaseReport[] {
  return row.phases as BootPhaseReport[]
}

function phaseView(phase: BootPhaseReport): BootPhaseView {
  return {
    ...phase,
    durationUs: phase.durationUs ?? null,
    readSizes: phase.readSizes ?? [],
    gaps: phase.gaps ?? [],
  }
}
