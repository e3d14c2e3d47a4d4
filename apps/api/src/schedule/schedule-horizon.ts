import { scheduleInstantsMax } from '@bootfarm/proto/uplink'
import { instantsAfter, type ScheduleWhen } from './schedule-times.ts'

/**
 * How far ahead edges know a schedule: they continue for at least 30 days without the control plane, or for as long as
 * 1,024 instants last if those are more frequent (one each minute: 17 hours). The instants in a desired state change
 * only when a week or half of them has passed, never from one request to the next.
 */
const dayMs = 86_400_000
const aheadMs = 37 * dayMs
const renewAfterMs = 7 * dayMs
/** An edge that comes late may still begin: packages/proto/UPLINK.md, "Schedules". */
export const latenessMs = 15 * 60_000
/** A boot that begins within this time of a power-on belongs to it. */
export const bootWindowMs = 15 * 60_000
/** An instant that has passed stays in the desired state this long. */
const keptMs = 60 * 60_000
const keptMax = scheduleInstantsMax / 4

interface Horizon {
  instants: Date[]
  renewAt: Date | null
}

interface HorizonInput {
  enabled: boolean
  when: ScheduleWhen
  timeZone: string
  /** The instants that edges know now: those that have just passed, and those started manually, stay. */
  known: Date[]
  /** Instants of runs that are not over: an edge ends a run whose schedule disappears. */
  open?: Date[]
}

export function horizonOf(schedule: HorizonInput, now: Date): Horizon {
  const keptFrom = now.getTime() - keptMs
  const open = new Set(schedule.open?.map((at) => at.getTime()))
  const kept = schedule.known
    .filter((at) => at <= now && (at.getTime() > keptFrom || open.has(at.getTime())))
    .sort((a, b) => a.getTime() - b.getTime())
    .slice(-keptMax)
  const coming = schedule.enabled ? comingOf(schedule, now) : []
  const room = Math.max(0, scheduleInstantsMax - kept.length)
  const instants = [...kept, ...coming.slice(0, room)]
  return { instants, renewAt: renewalOf(schedule, { instants, kept, coming, now }) }
}

function comingOf(schedule: HorizonInput, begin: Date): Date[] {
  const all = instantsAfter(schedule, begin, scheduleInstantsMax)
  // A time that is far away is known all the same: it comes alone.
  const until = begin.getTime() + aheadMs
  return schedule.when.kind === 'once' ? all : all.filter((at, index) => index === 0 || at.getTime() <= until)
}

function renewalOf(
  { enabled, when }: HorizonInput,
  { instants, kept, coming, now }: { instants: Date[]; kept: Date[]; coming: Date[]; now: Date },
): Date | null {
  const oldest = kept[0] ?? coming[0]
  const pruned = oldest ? new Date(Math.max(oldest.getTime(), now.getTime()) + keptMs + 1) : null
  if (!enabled || when.kind === 'once') return pruned
  if (coming.length === 0) return pruned
  const weekly = now.getTime() + renewAfterMs
  const isFull = instants.length >= scheduleInstantsMax
  const half = coming[Math.floor(coming.length / 2)]
  return new Date(isFull && half ? Math.min(weekly, half.getTime()) : weekly)
}
