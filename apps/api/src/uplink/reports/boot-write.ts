import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import type { BootReport } from '@bootfarm/proto/uplink'
import { isColdBoot, keptReadTimes } from '../../boot/read-times.ts'
import type { BootFacts } from '../../boot/rows.ts'
import { storedNetworkOf } from '../../network/public.ts'
import { outcomeOfReport } from '../../rules/boot-outcome.ts'
import { dayText } from '../../rules/utc-day.ts'
import type { KnownBoot } from './known-boots.ts'

/** A report that replaces the known state of its boot. */
export interface BootWrite {
  boot: BootReport
  /** Null for a new boot. */
  before: KnownBoot | null
  edgeId: string
  receivedOn: Date
  now: Date
}

/**
 * Returns summary and detail as `writeBoots` passes them to PostgreSQL.
 * @param detailDays the days that have partitions of details
 */
export function bootRowOf(write: BootWrite, detailDays: Set<string>) {
  const { before, edgeId, receivedOn, now } = write
  const boot = joinedBoot(write)
  const columns = bootColumns(boot, now)
  const day = dayText(receivedOn)
  return {
    id: boot.id,
    received_on: day,
    mac: boot.mac,
    is_new: before === null,
    revision: boot.revision,
    started_at: columns.startedAt.toISOString(),
    outcome: columns.outcome,
    failed_phase: columns.failedPhase,
    failed_cause: columns.failedCause,
    failed_text: columns.failedText,
    last_phase: columns.lastPhase,
    total_us: columns.totalUs,
    duration_us: columns.outcome === null ? null : columns.totalUs,
    bytes_out: columns.bytesOut,
    retries: columns.retries,
    simulated: boot.simulated,
    generated: boot.generated,
    vdisk_id: boot.vdiskId ?? null,
    version_id: boot.versionId ?? null,
    menu_entry: boot.menuEntry ?? null,
    phases: boot.phases.map(({ name, startUs, durationUs }) => ({ name, startUs, durationUs })),
    ...writeCacheColumns(boot, before),
    silent_since:
      boot.silentSinceUs === undefined
        ? null
        : new Date(columns.startedAt.getTime() + boot.silentSinceUs / 1000).toISOString(),
    lost: boot.lost ?? null,
    is_lost: boot.lost !== undefined && boot.silentSinceUs === undefined && boot.lost.powerOrderId === undefined,
    client_arch: boot.clientArch ?? null,
    is_cold: isColdBoot(boot.readTimes),
    ...machineColumns(boot),
    has_detail: detailDays.has(day),
    detail_phases: boot.phases,
    facts: factsOf(boot, edgeId),
    guest: boot.guest ?? null,
  }
}

/**
 * Joins a boot that came from another edge: phases that ended there keep that edge's values, and phases that continued
 * here started there.
 */
function joinedBoot({ boot, before }: BootWrite): BootReport {
  if (!boot.handOver || !before) return boot
  const phases = boot.phases.map((phase) => {
    const earlier = before.phases.find(({ name }) => name === phase.name)
    if (!earlier) return phase
    const startUs = Math.min(earlier.startUs, phase.startUs)
    const end = phase.durationUs === undefined ? undefined : phase.startUs + phase.durationUs
    return {
      ...phase,
      startUs,
      durationUs: earlier.durationUs ?? (end === undefined ? undefined : end - startUs),
    }
  })
  return { ...boot, phases }
}

/** A report without the device's own values leaves them unchanged. */
function writeCacheColumns({ guest }: BootReport, before: KnownBoot | null) {
  if (!guest)
    return {
      write_cache_used_bytes: before?.writeCacheUsedBytes ?? null,
      write_cache_size_bytes: before?.writeCacheSizeBytes ?? null,
      write_cache_held: before?.writeCacheHeld ?? null,
    }
  const { usedBytes, sizeBytes, atUs: _when, ...held } = guest.writeCache ?? {}
  return {
    write_cache_used_bytes: usedBytes ?? null,
    write_cache_size_bytes: sizeBytes ?? null,
    write_cache_held: Object.keys(held).length === 0 ? null : held,
  }
}

/** An integer of PostgreSQL: a device may claim more memory than there is. */
const memoryMibMax = 2 ** 31 - 1

function machineColumns(boot: BootReport) {
  const { machine, ip } = boot
  const card = [machine?.driver, machine?.card].filter((part) => part !== undefined).join(' ')
  return {
    processors: machine?.processors ?? null,
    memory_mib: machine ? Math.min(machine.memoryMib, memoryMibMax) : null,
    network_card: card || null,
    hardware_model: machine?.model || null,
    segment: ip ? ip.replace(/\d+$/, '0/24') : null,
    network: storedNetworkOf(boot),
  }
}

function factsOf(boot: BootReport, edgeId: string): BootFacts {
  return {
    handOver: boot.handOver && { ...boot.handOver, edgeId },
    machineId: boot.machineId,
    clientArch: boot.clientArch,
    vendorClass: boot.vendorClass,
    userClass: boot.userClass,
    ip: boot.ip,
    mtu: boot.mtu,
    cipher: boot.cipher,
    deviceKey: boot.deviceKey,
    machine: boot.machine,
    network: boot.network,
    reconnects: boot.reconnects,
    resumedUs: boot.resumedUs,
    routerWait: boot.routerWait,
    loaderSteps: boot.loaderSteps,
    bootCommandUs: boot.bootCommandUs,
    transfers: boot.transfers,
    transfersLeftOut: boot.transfersLeftOut,
    series: boot.series,
    program: boot.program,
    readAhead: boot.readAhead,
    readTimes: boot.readTimes && keptReadTimes(boot.readTimes),
    offers: boot.offers,
    lastPackets: boot.lastPackets,
  }
}

/** The fields of a boot that lists filter, sort and show, computed once when its report is applied. */
interface BootColumns {
  startedAt: Date
  outcome: BootOutcome | null
  failedPhase: string | null
  failedCause: string | null
  failedText: string | null
  lastPhase: string | null
  totalUs: number
  bytesOut: number
  retries: number
}

export function bootColumns(boot: BootReport, receivedAt: Date): BootColumns {
  const { outcome, phases } = boot
  const isFailed = outcome?.kind === 'failed'
  return {
    startedAt: startOf(boot, receivedAt),
    outcome: outcomeOfReport(boot),
    failedPhase: isFailed || outcome?.kind === 'silent' ? outcome.phase : null,
    failedCause: isFailed ? outcome.cause : null,
    failedText: isFailed ? (outcome.text ?? null) : null,
    lastPhase:
      phases.reduce<BootReport['phases'][number] | null>(
        (last, phase) => (last && last.startUs > phase.startUs ? last : phase),
        null,
      )?.name ?? null,
    totalUs: Math.max(0, ...phases.map((phase) => phase.startUs + (phase.durationUs ?? 0))),
    bytesOut: sum(phases.map((phase) => phase.bytesOut)),
    retries: sum(phases.map((phase) => phase.retries)),
  }
}

/** An edge's clock may be years ahead: nothing starts after it was reported. */
function startOf(boot: BootReport, receivedAt: Date): Date {
  return new Date(Math.min(boot.startedUnixMs, receivedAt.getTime()))
}

function sum(values: number[]): number {
  return Math.min(
    values.reduce((total, value) => total + value, 0),
    Number.MAX_SAFE_INTEGER,
  )
}
