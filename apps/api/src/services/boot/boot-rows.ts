import type { Prisma } from '@bootfarm/db'
import { bootCauseText } from '@bootfarm/proto/boot-phases'
import type { BootPhaseReport } from '@bootfarm/proto/uplink'
import type { BootDetail, BootPhaseView, BootSummary } from '../../domain/boot-view.ts'

export const bootSummarySelect = {
  id: true,
  deviceId: true,
  mac: true,
  siteId: true,
  edgeId: true,
  startedAt: true,
  outcome: true,
  failedPhase: true,
  failedCause: true,
  lastPhase: true,
  totalUs: true,
  bytesOut: true,
  retries: true,
  simulated: true,
  generated: true,
  phases: true,
  change: true,
  device: { select: { name: true } },
  site: { select: { name: true } },
  edge: { select: { name: true } },
} satisfies Prisma.BootSelect

export const bootDetailSelect = {
  ...bootSummarySelect,
  revision: true,
  receivedAt: true,
  updatedAt: true,
  failedText: true,
  vdiskId: true,
  versionId: true,
  facts: true,
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
}

export function bootSummaryOf(row: BootSummaryRow): BootSummary {
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
    phases: phasesOf(row).map(({ name, startUs, durationUs }) => ({
      name,
      startUs,
      durationUs: durationUs ?? null,
    })),
  }
}

export function bootDetailOf(row: BootDetailRow, vdisk: BootDetail['vdisk']): BootDetail {
  const facts = row.facts as unknown as BootFacts
  const summary = bootSummaryOf(row)
  return {
    ...summary,
    revision: Number(row.revision),
    receivedAt: row.receivedAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
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
    },
    phases: phasesOf(row).map(phaseView),
  }
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
