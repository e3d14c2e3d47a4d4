import { createRequire } from 'node:module'
import { watchAlerts } from '../../../apps/api/src/alert/watch/watch-alerts.ts'
import { setListeners } from '../../../apps/api/src/events/event-bus.ts'
import { listeners } from '../../../apps/api/src/listeners.ts'
import { addOwner } from '../../../apps/api/test/add-owner.ts'
import { createTenant, sessionCookie } from '../../../apps/api/test/test-tenant.ts'
import { openDb } from '../../../packages/db/src/index.ts'
import { inRoot } from '../../lib/paths.mjs'
import { say } from '../../lib/progress.mjs'
import { quantile } from '../cases.mjs'
import { withControlPlane } from '../control-plane.mjs'
import { read } from './queries.mjs'

const siteCount = 20
const collectionsPerSite = 50
const devicesPerCollection = 40
const objectiveCount = 500
const subscriberCount = 200
const bootCount = 1_000_000
const dayCount = 30
/** Of the last six hours, most in the last one: a morning. */
const recentCount = 100_000
const timesEach = 20
const warmUpCount = 2
const roundGoalMs = 2_000
const requestGoalMs = 300
const statementsShown = 6

/**
 * Evaluates the alerts of an organization of 1,000 collections with a million boots, and reads the pages of alerts.
 * @returns {Promise<{ rounds: Record<string, number[]>, statements: { text: string, ms: number }[],
 *   requests: Record<string, number[]>, open: number, mails: number }>}
 */
export function measureAlerts() {
  return withControlPlane('state', async (place) => {
    const tenant = await createTenant(place, 'alerted')
    const { userId } = await addOwner(place, tenant.organizationId, 'Owner')
    const cookie = await sessionCookie(place, userId)
    const begin = performance.now()
    await plant(place.ownerUrl, tenant)
    say(`planted ${bootCount.toLocaleString('en')} boots in ${((performance.now() - begin) / 1000).toFixed(0)} s`)
    const evaluated = await evaluate(place)
    const requests = {}
    for (const [name, path] of Object.entries({
      'GET /alerts?state=open': 'alerts?state=open',
      'GET /alerts': 'alerts',
      'GET /alert-count': 'alert-count',
      'GET /alert-causes': 'alert-causes',
      'GET /sites/{id}/objective': `sites/${tenant.siteId}/objective`,
    })) {
      requests[name] = []
      for (let count = 0; count < timesEach + warmUpCount; count++) {
        const ms = await timed(() => read(`${place.url}/api/v1/${path}`, cookie))
        if (count >= warmUpCount) requests[name].push(ms)
      }
    }
    const open = await place.db.alert.count({ where: { closedAt: null } })
    return { ...evaluated, requests, open }
  })
}

async function timed(work) {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

/** In this process, by the API's role: a first round, which opens alerts and mails them, and further ones. */
async function evaluate({ apiUrl, clock }) {
  setListeners(listeners)
  const sums = new Map()
  const { db } = openDb(apiUrl, ({ text, durationMs }) => sums.set(text, [...(sums.get(text) ?? []), durationMs]))
  let mails = 0
  const keepMail = async () => {
    mails += 1
  }
  const round = () => watchAlerts({ db, clock: clock.read, keepMail, webUrl: 'http://localhost:3000' })
  try {
    const rounds = { first: [await timed(round)], further: [] }
    sums.clear()
    for (let count = 0; count < timesEach; count++) rounds.further.push(await timed(round))
    const statements = [...sums]
      .map(([text, ms]) => ({ text: text.trim().replace(/\s+/g, ' ').slice(0, 60), ms: quantile(ms, 0.95) }))
      .sort((a, b) => b.ms - a.ms)
    return { rounds, statements: statements.slice(0, statementsShown), mails }
  } finally {
    await db.$disconnect()
  }
}

async function plant(ownerUrl, tenant) {
  const pg = createRequire(inRoot('packages/db/package.json'))('pg')
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  try {
    for (const statements of [places, boots, rollups, objectives, subscribers])
      for (const [text, values] of statements(tenant)) await client.query(text, values)
    await client.query('vacuum analyze')
  } finally {
    await client.end()
  }
}

function places({ organizationId, farmId }) {
  return [
    [
      `create temp table planted_site as select number, gen_random_uuid() as site_id, gen_random_uuid() as edge_id
      from generate_series(1, ${siteCount}) as number`,
      [],
    ],
    [
      `insert into site (organization_id, id, farm_id, name, time_zone)
      select $1, site_id, $2, 'Site ' || number, 'UTC' from planted_site`,
      [organizationId, farmId],
    ],
    [
      `insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at, heartbeat_at)
      select $1, edge_id, site_id, 'edge-' || number, 'planted ' || number, 'x86_64', '0.1.0', now(), now() + interval '1 day'
      from planted_site`,
      [organizationId],
    ],
    [
      `create temp table planted_collection as select row_number() over () as number, gen_random_uuid() as collection_id, site_id, edge_id
      from planted_site, generate_series(1, ${collectionsPerSite})`,
      [],
    ],
    [
      `insert into collection (organization_id, id, site_id, name)
      select $1, collection_id, site_id, 'Room ' || number from planted_collection`,
      [organizationId],
    ],
    [
      `create temp table planted_device as select row_number() over () as number, gen_random_uuid() as device_id, place.number as room,
        collection_id, site_id, edge_id from planted_collection as place, generate_series(1, ${devicesPerCollection})`,
      [],
    ],
    [
      `insert into device (organization_id, id, site_id, collection_id, name, mac)
      select $1, device_id, site_id, collection_id, 'pc-' || number,
        regexp_replace('06' || lpad(to_hex(number), 10, '0'), '(..)(?!$)', '\\1:', 'g') from planted_device`,
      [organizationId],
    ],
  ]
}

/** One boot in 50 fails; in the last hour all of one room in 40, of one cause. */
function boots({ organizationId }) {
  return [
    [`select ensure_boot_partitions((now() - interval '${dayCount} days')::date, now()::date)`, []],
    [
      `create temp table planted_boot as select gen_random_uuid() as id, started_at, device.*,
        case when room % 40 = 7 and started_at > now() - interval '1 hour' then 'other_offer_won'
          when drawn.number % 50 = 0 then (array['tftp_timeout', 'nbp_not_found', 'other_offer_won'])[1 + drawn.number % 3] end as cause,
        (20000000 + random() * 12000000)::bigint as us
      from (
        select number, 1 + number % ${siteCount * collectionsPerSite * devicesPerCollection} as device_number,
          case when number <= ${recentCount} then now() - interval '6 hours' * power(random(), 3)
            else now() - interval '6 hours' - random() * interval '${dayCount - 1} days' end as started_at
        from generate_series(1, ${bootCount}) as number
      ) as drawn join planted_device as device on device.number = device_number`,
      [],
    ],
    [
      `insert into boot_day (organization_id, received_on, earliest_started_at)
      select $1, (started_at at time zone 'UTC')::date, min(started_at) from planted_boot group by 2`,
      [organizationId],
    ],
    [
      `insert into boot (organization_id, id, received_on, edge_id, site_id, device_id, mac, revision, started_at, received_at, updated_at,
        outcome, failed_phase, failed_cause, last_phase, total_us, duration_us, bytes_out, retries, simulated, generated, phases)
      select $1, id, (started_at at time zone 'UTC')::date, edge_id, site_id, device_id,
        regexp_replace('06' || lpad(to_hex(number), 10, '0'), '(..)(?!$)', '\\1:', 'g'), 2, started_at, started_at, started_at,
        (case when cause is null then 'ready' else 'failed' end)::"BootOutcome", case when cause is not null then 'nbp' end, cause,
        'stage2', us, us, 100000000, 3, false, false, '[]' from planted_boot`,
      [organizationId],
    ],
  ]
}

function rollups({ organizationId }) {
  return [
    [
      `insert into boot_rollup (organization_id, site_id, grain, starts_at, ready_count, failed_count, total_us_sum, total_us_buckets, phases)
      select $1, site_id, grain, date_trunc(grain::text, started_at, 'UTC'), count(*) filter (where cause is null),
        count(*) filter (where cause is not null), sum(us), '{}', '{}'
      from planted_boot, unnest(enum_range(null::"RollupGrain")) as grain group by 2, 3, 4`,
      [organizationId],
    ],
    // As the job has counted them so far.
    [
      `insert into cause_hour (organization_id, site_id, cause, hour, boots)
      select $1, site_id, cause, date_trunc('hour', started_at, 'UTC'), count(*) from planted_boot
      where cause is not null and started_at < now() - interval '2 hours' group by 2, 3, 4`,
      [organizationId],
    ],
    [
      `insert into collection_cause_hour (organization_id, collection_id, cause, hour, boots)
      select $1, collection_id, cause, date_trunc('hour', started_at, 'UTC'), count(*) from planted_boot
      where cause is not null and started_at < now() - interval '2 hours' group by 2, 3, 4`,
      [organizationId],
    ],
  ]
}

/** Of each site, and of as many collections as may have one. */
function objectives({ organizationId }) {
  const insert = `insert into objective (organization_id, place_id, site_id, collection_id, permille, seconds, days, counted_since)`
  return [
    [
      `${insert} select $1, site_id, site_id, null, 950, 30, 30, now() - interval '30 days' from planted_site`,
      [organizationId],
    ],
    [
      `${insert} select $1, collection_id, site_id, collection_id, 950, 30, 30, now() - interval '30 days' from planted_collection
      where number <= ${objectiveCount - siteCount}`,
      [organizationId],
    ],
  ]
}

/** Viewers of the whole organization. */
function subscribers({ organizationId }) {
  return [
    [
      `create temp table planted_user as select number, gen_random_uuid() as user_id from generate_series(1, ${subscriberCount}) as number`,
      [],
    ],
    [
      `insert into "user" (id, name, email, email_verified, created_at, updated_at)
      select user_id, 'Viewer ' || number, 'viewer-' || number || '@example.test', true, now(), now() from planted_user`,
      [],
    ],
    [`insert into membership (organization_id, user_id) select $1, user_id from planted_user`, [organizationId]],
    [
      `insert into role_grant (organization_id, id, user_id, role) select $1, gen_random_uuid(), user_id, 'viewer' from planted_user`,
      [organizationId],
    ],
    [
      `insert into alert_subscription (organization_id, user_id, time_zone, mailed_until)
      select $1, user_id, 'UTC', now() - interval '1 day' from planted_user`,
      [organizationId],
    ],
  ]
}

/** @param {Awaited<ReturnType<typeof measureAlerts>>[]} rounds */
export function alertsTable(rounds) {
  const all = (of) => rounds.flatMap(of)
  const rowOf = (name, ms) =>
    `| ${[name, ...[quantile(ms, 0.5), quantile(ms, 0.95), Math.max(...ms)].map((one) => one.toFixed(0))].join(' | ')} |`
  const first = all((round) => round.rounds.first)
  const further = all((round) => round.rounds.further)
  const names = Object.keys(rounds[0]?.requests ?? {})
  const missed = names.filter(
    (name) =>
      quantile(
        all((round) => round.requests[name]),
        0.95,
      ) > requestGoalMs,
  )
  const isQuick = quantile(further, 0.95) <= roundGoalMs
  const counts = [
    siteCount,
    siteCount * collectionsPerSite,
    siteCount * collectionsPerSite * devicesPerCollection,
    bootCount,
  ]
  const [sites, collections, devices, boots] = counts.map((count) => count.toLocaleString('en'))
  return `## Alerts

One organization with ${sites} sites, ${collections} collections, ${devices} devices and ${boots} boots of ${dayCount} days, of which
${recentCount.toLocaleString('en')} are of the last six hours; ${objectiveCount} objectives and ${subscriberCount} people who get mails. After the first round
${rounds[0]?.open} alerts are open, and ${rounds[0]?.mails} mails are queued.

| what | p50 ms | p95 ms | longest |
| --- | --- | --- | --- |
${rowOf('first round of the job', first)}
${rowOf('further rounds', further)}
${names
  .map((name) =>
    rowOf(
      name,
      all((round) => round.requests[name]),
    ),
  )
  .join('\n')}

Goal: a round within ${roundGoalMs / 1000} s, of the 60 between two: ${isQuick ? '**reached**' : '**missed**'}; requests within ${requestGoalMs} ms at p95:
${missed.length === 0 ? '**reached**' : `**missed** by ${missed.join('; ')}`}.

| statement of further rounds, the slowest first | p95 ms |
| --- | --- |
${(rounds[0]?.statements ?? []).map(({ text, ms }) => `| \`${text.replaceAll('|', ' ')}\` | ${ms.toFixed(0)} |`).join('\n')}
`
}
