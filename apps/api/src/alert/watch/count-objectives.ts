import type { DbOrTransaction } from '../../context/service-context.ts'
import { dayText } from '../../rules/utc-day.ts'
import { type BurnCounts, type BurnWindow, burnWindows, windowMinutes } from './burn-rate.ts'

/** An objective, as its place has it now. */
export interface WatchedObjective {
  placeId: string
  siteId: string
  collectionId: string | null
  permille: number
  seconds: number
  days: number
}

export interface ObjectiveCounts {
  counts: BurnCounts
  /** Starts of the first and the last boot of each window that missed the objective. */
  missedFrom: Record<BurnWindow, Date | null>
  missedUntil: Date | null
}

const hourMs = 3_600_000
/** An edge reports within seconds; until then a boot that is ready looks like one that is not. */
const reportGraceMs = 30_000
/** More boots of one organization in six hours: the oldest are not looked at. */
const bootsReadMax = 200_000

interface Row {
  placeId: string
  minutes: number
  boots: number
  missed: number
  missedFrom: Date | null
  missedUntil: Date | null
}

/**
 * Counts the boots of places with objectives, also by hour, in one statement that reads each boot of the last six hours
 * once. A boot counts once its time is over, so that failures, which are quick, weigh no more than others; and one of
 * which nothing was heard since then does not count: its edge may be offline. Nor do boots of experiments, whose
 * settings somebody wanted to be slower.
 */
export async function countObjectives(
  db: DbOrTransaction,
  { organizationId, now }: { organizationId: string; now: Date },
  objectives: WatchedObjective[],
): Promise<Map<string, ObjectiveCounts>> {
  if (objectives.length === 0) return new Map()
  const places = objectives.map(({ placeId, siteId, collectionId, seconds }) => ({
    place_id: placeId,
    site_id: siteId,
    collection_id: collectionId,
    us: seconds * 1_000_000,
    as_of: new Date(now.getTime() - seconds * 1000 - reportGraceMs),
  }))
  const earliest = Math.min(...places.map(({ as_of }) => as_of.getTime())) - windowMinutes['6h'] * 60_000
  // Whole hours: what was counted of one is replaced.
  const since = new Date(Math.floor(earliest / hourMs) * hourMs)
  const rows = await db.$queryRaw<Row[]>`
    with place as (
      select * from jsonb_to_recordset(${JSON.stringify(places)}::jsonb)
        as row (place_id uuid, site_id uuid, collection_id uuid, us bigint, as_of timestamptz)
    ), recent as materialized (
      select newest.*, device.collection_id, edge.heartbeat_at from (
        select site_id, edge_id, device_id, started_at, outcome, total_us from boot
        where organization_id = ${organizationId}::uuid and received_on >= ${dayText(since)}::date
          and started_at >= ${since} and site_id in (select site_id from place) and not generated
          and (outcome is null or outcome in ('ready', 'failed', 'silent'))
          and not exists (select from experiment_trial as trial where trial.organization_id = ${organizationId}::uuid
            and trial.boot_id = boot.id)
        order by started_at desc limit ${bootsReadMax}
      ) as newest
      left join device on device.organization_id = ${organizationId}::uuid and device.id = newest.device_id
      left join edge on edge.organization_id = ${organizationId}::uuid and edge.id = newest.edge_id
    ), of_place as (
      -- In two parts: a boot meets the objectives of its own places, not each one of its site.
      select place.*, recent.started_at, recent.outcome, recent.total_us, recent.heartbeat_at
      from place join recent on recent.site_id = place.site_id where place.collection_id is null
      union all
      select place.*, recent.started_at, recent.outcome, recent.total_us, recent.heartbeat_at
      from place join recent on recent.collection_id = place.collection_id and recent.site_id = place.site_id
    ), judged as materialized (
      select place_id, as_of, started_at, not (outcome is not distinct from 'ready' and total_us <= us) as is_missed
      from of_place where started_at <= as_of
        and (outcome is not null or heartbeat_at > started_at + make_interval(secs => us / 1000000.0))
    ), kept as (
      insert into objective_hour as kept (organization_id, place_id, hour, boots, missed)
      select ${organizationId}::uuid, place_id, date_bin('1 hour', started_at, '2000-01-01 00:00:00+00'), count(*),
        count(*) filter (where is_missed)
      from judged group by 1, 2, 3
      on conflict (organization_id, place_id, hour) do update set boots = excluded.boots, missed = excluded.missed
      where excluded.boots >= kept.boots and (excluded.boots, excluded.missed) is distinct from (kept.boots, kept.missed)
    )
    select place_id::text as "placeId", minutes, count(*)::int as boots,
      (count(*) filter (where is_missed))::int as missed,
      min(started_at) filter (where is_missed) as "missedFrom", max(started_at) filter (where is_missed) as "missedUntil"
    from judged join unnest(${Object.values(windowMinutes)}::int[]) as minutes
      on judged.started_at > judged.as_of - make_interval(mins => minutes)
    group by place_id, minutes`
  return byPlace(objectives, rows)
}

function byPlace(objectives: WatchedObjective[], rows: Row[]): Map<string, ObjectiveCounts> {
  const found = new Map(rows.map((row) => [`${row.placeId} ${row.minutes}`, row]))
  return new Map(
    objectives.map(({ placeId }) => {
      const rowOf = (window: BurnWindow) => found.get(`${placeId} ${windowMinutes[window]}`)
      const all = <T>(of: (row: Row | undefined) => T) =>
        Object.fromEntries(burnWindows.map((window) => [window, of(rowOf(window))])) as Record<BurnWindow, T>
      return [
        placeId,
        {
          counts: all((row) => ({ boots: row?.boots ?? 0, missed: row?.missed ?? 0 })),
          missedFrom: all((row) => row?.missedFrom ?? null),
          missedUntil: rowOf('6h')?.missedUntil ?? null,
        },
      ]
    }),
  )
}
