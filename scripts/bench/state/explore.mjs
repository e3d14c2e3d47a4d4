import { createRequire } from 'node:module'
import { inRoot } from '../../lib/paths.mjs'
import { say } from '../../lib/progress.mjs'
import { quantile } from '../cases.mjs'
import { withControlPlane } from '../control-plane.mjs'
import { makeTenant } from '../fairness/tenants.mjs'

const bootCount = 5_000_000
const dayCount = 30
const siteCount = 200
const edgesPerSite = 2
const versionCount = 12
const timesEach = 20
const warmUpCount = 2
const goalMs = 1_000
const reportsPerMinute = 12_000
const batchSize = 100

/**
 * Reads what the pages "Explore" and "Compare" read, among five million boots, while an edge reports 12,000 a minute.
 * @returns {Promise<{ requests: Record<string, { ms: number[], share: number }>, reported: number, seconds: number }>}
 */
export function measureExplore() {
  return withControlPlane('state', async (place) => {
    const tenant = await makeTenant(place, 'explored')
    const begin = performance.now()
    const ids = await plant(place.ownerUrl, tenant)
    say(`planted ${bootCount.toLocaleString('en')} boots in ${((performance.now() - begin) / 1000).toFixed(0)} s`)
    const reports = startReports(tenant.edge)
    try {
      const requests = {}
      for (const [name, path] of Object.entries(pathsOf(ids)))
        requests[name] = await repeat(`${place.url}/api/v1/${path}`, tenant.owner)
      return { requests, ...reports.figures() }
    } finally {
      await reports.stop()
    }
  })
}

function pathsOf({ siteId, versionIds, edgeId, vdiskId }) {
  const daysAgo = (days) => new Date(Date.now() - days * 86_400_000).toISOString()
  const month = `since=${daysAgo(dayCount)}`
  const box = `boxSince=${daysAgo(10)}&boxUntil=${daysAgo(3)}&boxDurationUsMin=90000000`
  const versions = `vdiskId=${vdiskId}&versionId=${versionIds[3]}&baseVdiskId=${vdiskId}&baseVersionId=${versionIds[4]}`
  const compared = `${month}&baseSince=${daysAgo(dayCount)}&${versions}`
  return {
    '7 days': 'exploration',
    '30 days': `exploration?${month}`,
    '30 days by version': `exploration?${month}&by=version`,
    '30 days by device': `exploration?${month}&by=device`,
    '30 days by edge, failed': `exploration?${month}&by=edge&outcome=failed`,
    '30 days of a version': `exploration?${month}&vdiskId=${vdiskId}&versionId=${versionIds[3]}`,
    '30 days of a site by firmware': `exploration?${month}&siteId=${siteId}&by=firmware`,
    '30 days of an edge': `exploration?${month}&edgeId=${edgeId}`,
    '30 days of cold boots': `exploration?${month}&reads=cold`,
    '30 days of the slowest (a thousandth)': `exploration?${month}&durationUsMin=180000000`,
    'an hour': `exploration?since=${daysAgo(5 + 1 / 24)}&until=${daysAgo(5)}`,
    '30 days of cold boots of a version': `exploration?${month}&reads=cold&versionId=${versionIds[3]}`,
    'differences of a box': `exploration/differences?${month}&${box}`,
    'two versions compared': `exploration/comparison?${compared}`,
  }
}

/** Reports batches at their rate; one that is late is followed by the next at once. */
function startReports(edge) {
  const begin = performance.now()
  let reported = 0
  let isOver = false
  const running = (async () => {
    while (!isOver) {
      const dueMs = (reported / reportsPerMinute) * 60_000
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - (performance.now() - begin))))
      const status = await edge.report(batchSize)
      if (status !== 200) throw new Error(`the API answered ${status} to reports`)
      reported += batchSize
    }
  })()
  return {
    figures: () => ({ reported, seconds: (performance.now() - begin) / 1000 }),
    stop: () => {
      isOver = true
      return running
    },
  }
}

async function repeat(url, cookie) {
  const ms = []
  let share = 1
  for (let count = 0; count < timesEach + warmUpCount; count++) {
    const begin = performance.now()
    const answer = await fetch(url, { headers: { cookie } })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`)
    if (count >= warmUpCount) ms.push(performance.now() - begin)
    const body = JSON.parse(text)
    share = (body.sample ?? body.outside ?? body.set.sample).share
  }
  return { ms, share }
}

/** By SQL, day by day: reports would take seven hours. Boots have no `boot_key`, which only their own pages read. */
async function plant(ownerUrl, { organizationId, farmId, siteId, vdiskId }) {
  const pg = createRequire(inRoot('packages/db/package.json'))('pg')
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  try {
    await plantPlaces(client, { organizationId, farmId })
    await client.query(
      `insert into vdisk_version (organization_id, id, vdisk_id, number, size_bytes, disk_path, command_line)
      select $1, gen_random_uuid(), $2, 100 + number, 1, 'planted', '' from generate_series(1, ${versionCount}) as number`,
      [organizationId, vdiskId],
    )
    await client.query(`select ensure_boot_partitions((now() - interval '${dayCount} days')::date, now()::date)`)
    await client.query(
      `create temp table planted_version as select id, row_number() over () as place from vdisk_version
      where organization_id = $1 and number > 100`,
      [organizationId],
    )
    await client.query(
      `create temp table planted_device as select id, mac, row_number() over () as place from device where organization_id = $1`,
      [organizationId],
    )
    for (let day = 1; day <= dayCount; day++) await plantDay(client, { organizationId, vdiskId, day })
    await client.query('vacuum analyze boot')
    const { rows: places } = await client.query('select site_id, edge_id from planted_edge limit 1')
    const { rows: versions } = await client.query('select id from planted_version order by place')
    const { site_id: plantedSiteId, edge_id: edgeId } = places[0] ?? { site_id: siteId }
    return { siteId: plantedSiteId, edgeId, vdiskId, versionIds: versions.map(({ id }) => id) }
  } finally {
    await client.end()
  }
}

async function plantPlaces(client, { organizationId, farmId }) {
  await client.query(
    `create temp table planted_edge as
    select site_id, gen_random_uuid() as edge_id, row_number() over () as place
    from (select gen_random_uuid() as site_id from generate_series(1, ${siteCount})) as site, generate_series(1, ${edgesPerSite})`,
  )
  await client.query(
    `insert into site (organization_id, id, farm_id, name, time_zone)
    select distinct on (site_id) $1::uuid, site_id, $2::uuid, 'Site ' || place, 'UTC' from planted_edge order by site_id, place`,
    [organizationId, farmId],
  )
  await client.query(
    `insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at)
    select $1, edge_id, site_id, 'edge-' || place, 'planted ' || place, 'x86_64', '0.1.0', now() from planted_edge`,
    [organizationId],
  )
}

/** Durations are spread like those of a farm: half a minute, twice as long at the 95th percentile, and a long tail. */
async function plantDay(client, { organizationId, vdiskId, day }) {
  const text = (name, start, share) =>
    `jsonb_build_object('name', '${name}', 'startUs', (us * ${start})::bigint, 'durationUs', (us * ${share})::bigint)`
  const perDay = Math.round(bootCount / dayCount)
  await client.query(
    `insert into boot (organization_id, id, received_on, edge_id, site_id, device_id, mac, revision, started_at, received_at, updated_at,
      outcome, failed_phase, failed_cause, last_phase, total_us, duration_us, bytes_out, retries, simulated, generated, vdisk_id,
      version_id, client_arch, is_cold, phases)
    select $1, gen_random_uuid(), (started_at at time zone 'UTC')::date, edge_id, site_id, device.id, device.mac, 2, started_at, started_at,
      started_at, outcome::"BootOutcome", case when outcome = 'failed' then 'loader' end,
      case when outcome = 'failed' then 'nbp_not_found' end, 'stage2', us, us, 100000000, 3, false, false, $2, version.id,
      case when number % 3 = 0 then 0 else 7 end, is_cold,
      jsonb_build_array(${text('firmware', 0, 0.2)}, ${text('dhcp', 0.2, 0.03)}, ${text('nbp', 0.23, 0.02)},
        ${text('loader', 0.25, 0.15)}, ${text('breather', 0.4, 0.1)}, ${text('stage2', 0.5, 0.5)})
    from (
      select number, is_cold, case when chance < 0.97 then 'ready' when chance < 0.99 then 'failed' else 'silent' end as outcome,
        date_trunc('day', now()) - make_interval(days => $3) + make_interval(secs => 86399 * power(random(), 1.5)) as started_at,
        (25000000 * exp(0.4 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())) * case when is_cold then 1.6 else 1 end)::bigint
          as us
      from (select number, random() < 0.15 as is_cold, random() as chance from generate_series(1, ${perDay}) as number) as drawn
    ) as boot
      join planted_edge on planted_edge.place = number % ${siteCount * edgesPerSite} + 1
      join planted_version as version on version.place = number % ${versionCount} + 1
      join planted_device as device on device.place = number % 2000 + 1`,
    [organizationId, vdiskId, day],
  )
  await client.query(
    `insert into boot_day (organization_id, received_on, earliest_started_at)
    select $1, day, day from (select (date_trunc('day', now()) - make_interval(days => $2))::date as day) as planted`,
    [organizationId, day],
  )
}

/** @param {Awaited<ReturnType<typeof measureExplore>>[]} rounds */
export function exploreTable(rounds) {
  const first = rounds[0]?.requests ?? {}
  const rows = Object.keys(first).map((name) => {
    const ms = rounds.flatMap(({ requests }) => requests[name].ms)
    const cells = [quantile(ms, 0.5), quantile(ms, 0.95), Math.max(...ms)].map((one) => one.toFixed(0))
    const percent = first[name].share * 100
    const share = `${percent >= 10 ? percent.toFixed(0) : percent.toPrecision(2)} %`
    return { name, isReached: quantile(ms, 0.95) <= goalMs, text: `| ${[name, share, ...cells].join(' | ')} |` }
  })
  const missed = rows.filter(({ isReached }) => !isReached).map(({ name }) => name)
  const perMinute = rounds.map(({ reported, seconds }) => ((reported / seconds) * 60).toFixed(0)).join(', ')
  return `## Explore

One organization with ${bootCount.toLocaleString('en')} boots of ${dayCount} days at ${siteCount} sites. Each request is sent ${timesEach} times, one after the
other, while an edge reports boots: ${perMinute} a minute. The share is that of the boots that a request reads as a sample.

| request | share | p50 ms | p95 ms | longest |
| --- | --- | --- | --- | --- |
${rows.map(({ text }) => text).join('\n')}

Goal: p95 of each at most ${goalMs} ms: ${missed.length === 0 ? '**reached**' : `**missed** by ${missed.join('; ')}`}.
`
}
