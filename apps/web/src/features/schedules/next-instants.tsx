'use client'

import { useQuery } from '@tanstack/react-query'
import { Notice } from '../../components/field'
import { Instant } from '../../components/instant'
import { LoadingState, Panel, Skeleton } from '../../components/page'
import { countOf } from '../../lib/format-quantity'
import { formatInstantInFull } from '../../lib/format-time'
import { readableError, useTRPC } from '../../lib/trpc'
import { noteText } from './schedule-text'
import type { PlannedInstant, ScheduleFields, ScheduleWhen } from './schedule-types'

interface NextInstantsProps {
  farmId: string
  siteId: string | null
  when: ScheduleWhen
  timeZone: string
  targets: ScheduleFields['targets']
  ratePerMinute: number
}

/**
 * The next ten, in the schedule's zone and the viewer's, with what DST does to them, and how many devices each starts.
 */
export function NextInstants({ ratePerMinute, ...asked }: NextInstantsProps) {
  const query = useQuery(
    useTRPC().schedule.preview.queryOptions(asked, { placeholderData: (previous) => previous, retry: false }),
  )
  const { data } = query
  return (
    <Panel title="Next runs" flush>
      {query.error ? (
        <p role="alert" className="p-4 text-failed text-sm">
          {readableError(query.error)}
        </p>
      ) : data ? (
        <>
          <ol>
            {data.instants.map((instant) => (
              <InstantRow key={instant.at} instant={instant} timeZone={asked.timeZone} />
            ))}
          </ol>
          {data.instants.length === 0 && <p className="p-4 text-ink-soft text-sm">No further runs.</p>}
          <div className="flex flex-col gap-2 border-line border-t p-4 text-ink-soft text-xs">
            <p>
              <span className="font-medium text-ink">{countOf(data.deviceCount, 'device')}</span>
              {data.skippedCount > 0 && `, ${data.skippedCount} of them skipped: disabled, or no vDisk to boot`}
              {data.deviceCount > 1 &&
                `; the last one starts ${spanText(data.deviceCount, ratePerMinute)} after the first`}
            </p>
            {data.knownUntil && data.instants.length > 1 && (
              <p>
                Edges can run offline until <Instant at={data.knownUntil} />.
              </p>
            )}
            <DstRule />
          </div>
        </>
      ) : (
        <LoadingState label="Loading the next runs">
          <div className="flex flex-col gap-3 p-4">
            <Skeleton className="h-4 w-full" />
            <Skeleton className="h-4 w-full" />
            <Skeleton className="h-4 w-2/3" />
          </div>
        </LoadingState>
      )}
    </Panel>
  )
}

function InstantRow({ instant, timeZone }: { instant: PlannedInstant; timeZone: string }) {
  const at = new Date(instant.at)
  const local = formatInstantInFull(at, timeZone)
  const viewers = formatInstantInFull(at)
  return (
    <li className="border-line border-t px-4 py-2 text-sm first:border-t-0">
      <time dateTime={instant.at} className="text-ink tabular-nums">
        {weekdayOf(at, timeZone)} {local}
      </time>
      {viewers !== local && <span className="block text-ink-faint text-xs">{viewers} your time</span>}
      {instant.note && (
        <div className="mt-1">
          <Notice tone="silent">{noteText[instant.note]}</Notice>
        </div>
      )}
    </li>
  )
}

function weekdayOf(at: Date, timeZone: string): string {
  return at.toLocaleDateString('en-GB', { timeZone, weekday: 'short' })
}

/** The meaning of a fixed time on the two days of the year when clocks change. */
function DstRule() {
  return (
    <p>
      Daylight saving time: a local time that occurs twice in autumn runs once, at its first occurrence. A local time
      that is skipped in spring runs after the clock change (02:30 at 03:00).
    </p>
  )
}

function spanText(devices: number, ratePerMinute: number): string {
  const seconds = Math.round(((devices - 1) * 60) / ratePerMinute)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}
