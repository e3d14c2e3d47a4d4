import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import type { BootReport } from '@bootfarm/proto/uplink'

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
    outcome: outcome?.kind ?? null,
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
