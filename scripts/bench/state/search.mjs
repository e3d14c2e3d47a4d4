import { createRequire } from 'node:module'
import { person } from '../../../apps/api/test/matrix/callers.ts'
import { inRoot } from '../../lib/paths.mjs'
import { secondsOfProcess, secondsOfServer } from '../../lib/processor-time.mjs'
import { quantile } from '../cases.mjs'
import { bootCount, deviceCount, siteCount } from './plant-large.mjs'

const searchBootCount = 1_000_000
const timesEach = 40
const warmUpCount = 3
const goalMs = 300

/** Searches as a person types, by an owner, and by a viewer of one site who sees ten of all devices. */
export async function measureSearch(place, tenant) {
  await withClient(place.ownerUrl, (client) => plantBoots(client, tenant.organizationId))
  const known = await knownOf(place, tenant.organizationId)
  const { organizationId, farmId } = tenant
  const scope = { farmId, siteId: known.siteId, collectionId: null }
  const viewer = await person(place, organizationId, { role: 'viewer', scope })
  const measured = {}
  for (const [name, search] of Object.entries(searchesOf(known)))
    for (const [who, cookie] of Object.entries({ owner: tenant.cookie, 'viewer of a site': viewer.headers.cookie }))
      measured[`${name}, ${who}`] = await repeat(place, { search, cookie })
  return { measured, plans: await explain(place, tenant.organizationId), bytes: await sizesOf(place) }
}

function searchesOf({ deviceId, mac, bootId }) {
  return {
    'one letter (p)': 'p',
    'the beginning of every name (pc-)': 'pc-',
    'a name (pc-4711)': 'pc-4711',
    'a later word (4711)': '4711',
    'a MAC address': mac,
    'its last two bytes': mac.slice(-5),
    'the beginning of an id': deviceId.slice(0, 8),
    'an id of a boot': bootId,
    'an IP address (192.0.2.1)': '192.0.2.1',
    'a version (linux 3)': 'linux 3',
    'nothing (zzz)': 'zzz',
  }
}

/** Copies of the boots that are there, of the days on which those arrived, unless another case has made as many. */
async function plantBoots(client, organizationId) {
  const { rows } = await client.query('select count(*)::integer from boot where organization_id = $1', [organizationId])
  const copies = rows[0].count >= searchBootCount ? 0 : searchBootCount / bootCount - 1
  await client.query(
    `create temp table copied as select gen_random_uuid() as copy_id, boot.* from boot, generate_series(1, ${copies})
    where organization_id = $1`,
    [organizationId],
  )
  await client.query(
    `insert into boot_key (organization_id, boot_id, received_on, change)
    select organization_id, copy_id, received_on, ${bootCount} + row_number() over () from copied`,
  )
  await client.query(
    `insert into boot (organization_id, id, received_on, edge_id, site_id, device_id, mac, revision, started_at, received_at,
      updated_at, outcome, last_phase, total_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, phases)
    select organization_id, copy_id, received_on, edge_id, site_id, device_id, mac, revision, started_at, received_at,
      updated_at, outcome, last_phase, total_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, phases from copied`,
  )
  // The addresses that their boots would have told.
  await client.query(
    `update device set last_boot_ip = '10.' || (number / 65536) || '.' || (number / 256 % 256) || '.' || (number % 256),
      last_boot_machine_id = gen_random_uuid()
    from (select id, row_number() over (order by id) as number from device where organization_id = $1) as numbered
    where device.organization_id = $1 and device.id = numbered.id`,
    [organizationId],
  )
  await client.query('vacuum analyze')
}

async function knownOf({ db }, organizationId) {
  const [known] = await db.$queryRaw`
    select id::text as "deviceId", mac, last_boot_id::text as "bootId", site_id::text as "siteId" from device
    where organization_id = ${organizationId}::uuid and name = 'pc-4711'`
  return known
}

async function repeat(place, { search, cookie }) {
  const url = `${place.url}/api/v1/search?search=${encodeURIComponent(search)}`
  const ms = []
  let found = 0
  for (let count = 0; count < warmUpCount; count++) found = await read(url, cookie)
  const before = secondsOf(place)
  for (let count = 0; count < timesEach; count++) {
    const begin = performance.now()
    await read(url, cookie)
    ms.push(performance.now() - begin)
  }
  return { ms, found, processorMs: ((secondsOf(place) - before) * 1_000) / timesEach }
}

const secondsOf = ({ pid, postgresPid }) => secondsOfProcess(pid) + secondsOfServer(postgresPid)

async function read(url, cookie) {
  const answer = await fetch(url, { headers: { cookie } })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`)
  return JSON.parse(text).groups.reduce((sum, { items }) => sum + items.length, 0)
}

/** By the API's role, below row-level security. */
function explain({ apiUrl }, organizationId) {
  const part = (rank, term) => `explain (analyze, costs off, timing off, buffers) select key, object_id from search_key
    where organization_id = '${organizationId}' and kind = 'device' and rank = ${rank}::smallint
      and key >= '${term}' and key < '${term}\u{10ffff}' order by key, object_id limit 6`
  return withClient(apiUrl, async (client) => {
    await client.query('begin')
    await client.query(`select set_config('bootfarm.organization_id', $1, true)`, [organizationId])
    const plans = []
    for (const statement of [part(0, 'pc-'), part(1, '4711')]) {
      const { rows } = await client.query(statement)
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
    }
    await client.query('rollback')
    return plans
  })
}

async function sizesOf({ db }) {
  const [sizes] = await db.$queryRaw`select count(*)::integer as rows, pg_table_size('search_key')::float8 as "table",
    pg_indexes_size('search_key')::float8 as indexes from search_key`
  return sizes
}

async function withClient(connectionString, work) {
  const pg = createRequire(inRoot('packages/db/package.json'))('pg')
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** @param {Awaited<ReturnType<typeof measureSearch>>[]} rounds */
export function searchTable(rounds) {
  const rows = Object.keys(rounds[0]?.measured ?? {}).map((name) => {
    const cases = rounds.map(({ measured }) => measured[name])
    const ms = cases.flatMap((one) => one.ms)
    const p95 = quantile(ms, 0.95)
    const processorMs = cases.reduce((sum, one) => sum + one.processorMs, 0) / cases.length
    const times = [quantile(ms, 0.5), p95, Math.max(...ms), processorMs].map((one) => one.toFixed(0))
    return { name, isReached: p95 <= goalMs, text: `| ${[name, cases[0].found, ...times].join(' | ')} |` }
  })
  const missed = rows.filter(({ isReached }) => !isReached).map(({ name }) => name)
  const [{ plans, bytes }] = rounds
  const megabytes = (size) => (size / 1e6).toFixed(0)
  const numbers = [siteCount, deviceCount, searchBootCount, bytes.rows].map((count) => count.toLocaleString('en'))
  return `## Search

One organization with ${numbers[0]} sites, collections and edges, ${numbers[1]} devices and ${numbers[2]} boots of 30 days. Each search is
sent ${timesEach} times, one after the other, as \`GET /search\`. There are ${numbers[3]} keys: ${megabytes(bytes.table)} MB, and ${megabytes(bytes.indexes)} MB of indexes.

| search | found | p50 ms | p95 ms | longest | processor ms |
| --- | --- | --- | --- | --- | --- |
${rows.map(({ text }) => text).join('\n')}

Goal: p95 of each at most ${goalMs} ms: ${missed.length === 0 ? '**reached**' : `**missed** by ${missed.join('; ')}`}.

Two of the parts, by the API's role below row-level security:

${plans.map((plan) => `\`\`\`\n${plan}\n\`\`\``).join('\n')}
`
}
