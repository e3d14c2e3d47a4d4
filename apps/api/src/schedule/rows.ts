import type { Prisma } from '@bootfarm/db'
import { localText, type ScheduleWhen } from './schedule-times.ts'
import type { RunSummary, ScheduleSummary } from './schema.ts'

export const runSummarySelect = {
  id: true,
  scheduleId: true,
  instant: true,
  state: true,
  reason: true,
  requestedByUserId: true,
  startedAt: true,
  endedAt: true,
  deviceCount: true,
  waitingCount: true,
  sentCount: true,
  bootingCount: true,
  readyCount: true,
  failedCount: true,
  notSeenCount: true,
  skippedCount: true,
  schedule: { select: { name: true } },
} satisfies Prisma.ScheduleRunSelect
type RunRow = Prisma.ScheduleRunGetPayload<{ select: typeof runSummarySelect }>

export const scheduleSummarySelect = {
  id: true,
  farmId: true,
  siteId: true,
  name: true,
  enabled: true,
  power: true,
  ratePerMinute: true,
  kind: true,
  onceAt: true,
  cron: true,
  timeZone: true,
  instants: true,
  revision: true,
  createdAt: true,
  updatedAt: true,
  farm: { select: { name: true } },
  site: { select: { name: true } },
  runs: { orderBy: [{ instant: 'desc' }, { id: 'desc' }], take: 1, select: runSummarySelect },
} satisfies Prisma.ScheduleSelect
type ScheduleSummaryRow = Prisma.ScheduleGetPayload<{ select: typeof scheduleSummarySelect }>

export const scheduleDetailSelect = {
  ...scheduleSummarySelect,
  targets: {
    orderBy: { position: 'asc' },
    select: {
      kind: true,
      deviceId: true,
      collectionId: true,
      tag: true,
      device: { select: { name: true, site: { select: { name: true } } } },
      collection: { select: { name: true, site: { select: { name: true } } } },
    },
  },
} satisfies Prisma.ScheduleSelect

export function runSummaryOf(row: RunRow): RunSummary {
  return {
    id: row.id,
    scheduleId: row.scheduleId,
    scheduleName: row.schedule.name,
    instant: row.instant.toISOString(),
    state: row.state,
    reason: row.reason,
    byHand: row.requestedByUserId !== null,
    startedAt: row.startedAt?.toISOString() ?? null,
    endedAt: row.endedAt?.toISOString() ?? null,
    deviceCount: row.deviceCount,
    counts: {
      waiting: row.waitingCount,
      sent: row.sentCount,
      booting: row.bootingCount,
      ready: row.readyCount,
      failed: row.failedCount,
      not_seen: row.notSeenCount,
      skipped: row.skippedCount,
    },
  }
}

export function whenOf(row: Pick<ScheduleSummaryRow, 'kind' | 'cron' | 'onceAt' | 'timeZone'>): ScheduleWhen {
  if (row.kind === 'cron') return { kind: 'cron', expression: row.cron ?? '' }
  const at = row.onceAt ?? new Date(0)
  const seconds = at.getUTCSeconds()
  const minutes = localText(at, row.timeZone)
  return { kind: 'once', at: seconds === 0 ? minutes : `${minutes}:${String(seconds).padStart(2, '0')}` }
}

export function scheduleSummaryOf(row: ScheduleSummaryRow, now: Date): ScheduleSummary {
  const next = row.enabled ? row.instants.find((at) => at > now) : undefined
  const [lastRun] = row.runs
  return {
    id: row.id,
    farmId: row.farmId,
    farmName: row.farm.name,
    siteId: row.siteId,
    siteName: row.site?.name ?? null,
    name: row.name,
    enabled: row.enabled,
    power: row.power,
    ratePerMinute: row.ratePerMinute,
    when: whenOf(row),
    timeZone: row.timeZone,
    nextInstant: next?.toISOString() ?? null,
    lastRun: lastRun ? runSummaryOf(lastRun) : null,
    revision: row.revision,
  }
}
