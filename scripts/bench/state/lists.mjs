import { createRequire } from 'node:module'
import { inRoot } from '../../lib/paths.mjs'
import { quantile } from '../cases.mjs'
import { bootCount, deviceCount, siteCount } from './plant-large.mjs'
import { read, repeat } from './queries.mjs'

/** Boots for each one that was planted. */
const copies = 5
const goalMs = 300

/**
 * Reads lists of boots and overviews among a million boots, one request after the other, as an owner.
 * @returns {Promise<Record<string, { ms: number[], bytes: number, plan?: string }>>} by name
 */
export async function measureLists(place, tenant) {
  const pg = createRequire(inRoot('packages/db/package.json'))('pg')
  const client = new pg.Client({ connectionString: place.ownerUrl })
  await client.connect()
  try {
    await plantCopies(client, tenant)
    const measured = {}
    for (const [name, path] of Object.entries(await pathsOfLists(client, tenant)))
      measured[name] = await repeat(() => read(`${place.url}/api/v1/${path}`, tenant.cookie))
    measured['plan: slowest boots'] = { ms: [], bytes: 0, plan: await planOf(client, tenant) }
    return measured
  } finally {
    await client.end()
  }
}

/** Earlier on the same day, and each copy with another duration. */
async function plantCopies(client, { organizationId }) {
  const kept = `edge_id, site_id, device_id, mac, revision, received_at, updated_at, outcome, last_phase, bytes_out, retries,
    simulated, generated, vdisk_id, version_id, phases`
  await client.query('update boot set duration_us = total_us where organization_id = $1', [organizationId])
  await client.query(
    `create temp table copied as select gen_random_uuid() as new_id, copy, boot.* from boot, generate_series(1, ${copies - 1}) as copy
    where organization_id = $1`,
    [organizationId],
  )
  await client.query(
    `insert into boot_key (organization_id, boot_id, received_on, change)
    select organization_id, new_id, received_on, ${bootCount} + row_number() over () from copied`,
  )
  await client.query(
    `insert into boot (organization_id, id, received_on, started_at, total_us, duration_us, ${kept})
    select organization_id, new_id, received_on, started_at - copy * interval '7 minutes', total_us / 2 * copy, total_us / 2 * copy, ${kept}
    from copied`,
  )
  await client.query(
    `update boot_day set earliest_started_at = earliest_started_at - interval '1 hour' where organization_id = $1`,
    [organizationId],
  )
  await plantHardware(client, organizationId)
  await client.query('vacuum full boot')
  await client.query('vacuum analyze boot')
}

/** By the device, as real ones: four sizes, three cards, and one card in 20,000 devices that few boots have. */
async function plantHardware(client, organizationId) {
  await client.query(
    `update boot set hour = extract(hour from started_at at time zone 'UTC'), processors = (array[4, 8, 8, 16])[1 + kind % 4],
      memory_mib = (array[7900, 16012, 16012, 32102])[1 + kind % 4] + kind % 3, edge_release = '0.1.' || kind % 2,
      network_card = case when kind % 20000 = 7 then 'rare 1af4:1000' else (array['e1000e', 'igb', 'r8169'])[1 + kind % 3] end,
      hardware_model = 'Maker Desk ' || kind % 7, storage = (array['nvme', 'ssd'])[1 + kind % 2],
      segment = '10.' || kind % 40 || '.0.0/24'
    from (select id as kind_id, abs(hashtext(device_id::text)) as kind from boot where organization_id = $1) as drawn
    where boot.organization_id = $1 and boot.id = kind_id`,
    [organizationId],
  )
}

async function pathsOfLists(client, { organizationId, farmId, vdiskId, versionIds }) {
  const { rows } = await client.query(
    `select device.site_id, device.collection_id, device.name, edge.id as edge_id from device
      join edge on edge.organization_id = device.organization_id and edge.site_id = device.site_id
    where device.organization_id = $1 and device.last_boot_id is not null order by device.name limit 1 offset 5000`,
    [organizationId],
  )
  const { site_id: siteId, collection_id: collectionId, edge_id: edgeId, name } = rows[0]
  const since = new Date(Date.now() - 86_400_000).toISOString()
  const queries = {
    newest: '',
    oldest: 'sort=startedAt',
    'slowest of 30 days': 'sort=-durationUs',
    'quickest of 30 days': 'sort=durationUs',
    'slowest of a day': `sort=-durationUs&since=${since}`,
    'slowest failed or timed out': 'sort=-durationUs&outcome=unsuccessful',
    'slowest of a farm': `sort=-durationUs&farmId=${farmId}`,
    'failed or timed out of a day': `outcome=unsuccessful&since=${since}`,
    'no response (none)': 'outcome=no_response',
    'booting (none)': 'outcome=booting',
    'of a cause (none)': 'failedCause=tftp_timeout',
    'of a site': `siteId=${siteId}`,
    'of an edge': `edgeId=${edgeId}`,
    'of a collection': `collectionId=${collectionId}`,
    'of a collection, slowest': `collectionId=${collectionId}&sort=-durationUs`,
    'of a vDisk': `vdiskId=${vdiskId}`,
    'of a version': `versionId=${versionIds[1]}&vdiskId=${vdiskId}`,
    'of a version without boots': `versionId=${versionIds[0]}`,
    'search of one name': `search=${name}`,
    'search of 1,111 names': 'search=pc-9999',
    'an hour or longer (none)': 'durationUsMin=3600000000',
    'of an hour of a day': 'hour=3',
    'of 16 processors': 'processors=16',
    'of a frequent card': 'networkCard=igb',
    'of a rare card': `networkCard=${encodeURIComponent('rare 1af4:1000')}`,
    'of a card (none)': 'networkCard=none',
    'of a model and a storage': `hardwareModel=${encodeURIComponent('Maker Desk 3')}&storage=ssd`,
    'of a segment': `segment=${encodeURIComponent('10.7.0.0/24')}`,
    'of a segment, most processors first': `segment=${encodeURIComponent('10.7.0.0/24')}&sort=-processors`,
    ...Object.fromEntries(
      ['hour', 'processors', 'memoryGib', 'networkCard', 'storage'].flatMap((name) => [
        [`by ${name}`, `sort=${name}`],
        [`by ${name}, backwards`, `sort=-${name}`],
      ]),
    ),
  }
  const paths = Object.fromEntries(
    Object.entries(queries).map(([title, query]) => [`boots: ${title}`, `boots?limit=50&${query}`]),
  )
  return {
    ...paths,
    'overview of the organization': 'overview',
    'overview of a farm': `overview?farmId=${farmId}`,
    'overview of a site': `overview?siteId=${siteId}`,
  }
}

/** Of the statement that the list of the slowest boots sends. */
async function planOf(client, { organizationId }) {
  const { rows } = await client.query(
    `explain (analyze, costs off, timing off) select id from boot where organization_id = $1
      and received_on = any(array(select received_on from boot_day where organization_id = $1))
      order by duration_us desc nulls last, id desc limit 51`,
    [organizationId],
  )
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}

/** @param {Awaited<ReturnType<typeof measureLists>>[]} rounds */
export function listsTable(rounds) {
  const names = Object.keys(rounds[0] ?? {}).filter((name) => !rounds[0][name].plan)
  const rows = names.map((name) => {
    const ms = rounds.flatMap((round) => round[name].ms)
    const p95 = quantile(ms, 0.95)
    const times = [quantile(ms, 0.5), p95, Math.max(...ms)].map((one) => one.toFixed(0))
    return { name, isReached: p95 <= goalMs, text: `| ${[name, ...times].join(' | ')} |` }
  })
  const missed = rows.filter(({ isReached }) => !isReached).map(({ name }) => name)
  const counts = [siteCount, deviceCount, bootCount * copies].map((count) => count.toLocaleString('en'))
  return `## Lists of boots

One organization with ${counts[0]} sites, ${counts[1]} devices and ${counts[2]} boots of 30 days; pages of 50 boots.

| request | p50 ms | p95 ms | longest |
| --- | --- | --- | --- |
${rows.map(({ text }) => text).join('\n')}

Goal: p95 of each at most ${goalMs} ms: ${missed.length === 0 ? '**reached**' : `**missed** by ${missed.join('; ')}`}.

\`\`\`
${rounds[0]?.['plan: slowest boots'].plan}
\`\`\`
`
}
