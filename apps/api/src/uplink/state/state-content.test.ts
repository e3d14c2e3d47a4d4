import { inOrganization, openDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { plantState } from '../../../test/plant-state.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { createTenant } from '../../../test/test-tenant.ts'
import { type Notifications, openNotifications, topicText } from '../../context/notifications.ts'
import { readSigningKeys } from '../../organization/signing-keys.ts'
import { canonicalJson } from '../../rules/canonical-json.ts'
import { readStateContent } from './state-content.ts'

/**
 * Changes each row and each column that a desired state is made of, according to the catalogue, and compares the woken
 * edges, and the sites whose version was raised, with those whose state has changed. A column that is read and wakes
 * nobody fails, unless it is listed here.
 */
const wakesNobody = [
  // Where a device's home is chosen, which the same reading keeps: from then on these change nothing.
  /^edge_version\./,
  /^device\.layer_edge_id$/,
  /^edge\.heartbeat_at$/,
  // Set with the key of a row, which stays.
  /\.organization_id$/,
  /^organization\.id$/,
]
const rowsMax = 2
/** Each of some 150 columns costs four readings of all states; beside other tests they took two minutes. */
const limit = { timeout: 600_000 }

/** Another value of the same type, as SQL. */
const otherValues: [RegExp, (column: string) => string][] = [
  [/^uuid$/, () => 'gen_random_uuid()'],
  [/^text$/, (column) => `coalesce(${column}, '') || 'x'`],
  [/^(smallint|integer|bigint)$/, (column) => `coalesce(${column}, 0) + 1000`],
  [/^boolean$/, (column) => `not coalesce(${column}, false)`],
  [/^timestamp.*[^\]]$/, (column) => `coalesce(${column}, now()) + interval '1 hour'`],
  [/^uuid\[\]$/, (column) => `${column} || gen_random_uuid()`],
  [/^text\[\]$/, (column) => `${column} || 'x'::text`],
  [/^timestamp.*\[\]$/, (column) => `${column} || now()`],
  [/^bytea$/, (column) => `coalesce(${column}, '') || '\\x01'`],
  [/^jsonb$/, (column) => `jsonb_set(${column}, '{address}', '"192.0.2.77"')`],
]

interface Edge {
  organizationId: string
  edgeId: string
  siteId: string
  bootEpoch: number
  counter: number
}
type Row = Record<string, unknown>
interface Column {
  table: string
  column: string
  type: string
  labels: bigint
  nullable: boolean
}

let api: TestApi
let notifications: Notifications
let organizationId: string
let edges: Edge[]
let read: Column[]
let keys: Map<string, string[]>
let states: Map<string, string>
let sentinels = 0
const woken = new Set<string>()

beforeAll(async () => {
  api = await startTestApi()
  notifications = await openNotifications(api.serverDatabaseUrl)
  const tenant = await createTenant(api, 'state')
  organizationId = tenant.organizationId
  const sites = await plantState(api, tenant)
  for (const siteId of sites)
    notifications.subscribe(topicText({ state: { siteId } }), () => {
      woken.add(siteId)
    })
  const rows = await api.db.edge.findMany({ where: { siteId: { in: sites } }, select: { id: true, siteId: true } })
  edges = rows.map(({ id, siteId }) => ({ organizationId, edgeId: id, siteId, bootEpoch: 1, counter: 1 }))
  states = await readStates()
  read = await columnsOf(await statementsOf(readStates))
  keys = new Map(
    (
      await api.db.$queryRaw<{ name: string; columns: string[] }[]>`
        select conrelid::regclass::text as name, array_agg(attname::text) as columns
        from pg_constraint join pg_attribute on attrelid = conrelid and attnum = any(conkey)
        where contype = 'p' and connamespace = 'public'::regnamespace group by 1`
    ).map(({ name, columns }) => [name, columns]),
  )
  await dropRules()
})
afterAll(async () => {
  await notifications.close()
  await api.close()
})

/** Returns the state of all edges by site; an error's text if there is no state. */
async function readStates(db = api.db): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const edge of edges) {
    const state = await readStateContent(db, edge, api.clock.read()).catch(String)
    const signing = await readSigningKeys(db, edge).catch(String)
    const text = typeof state === 'string' ? state : canonicalJson({ content: state.content, sealKey: state.sealKey })
    const keyText = typeof signing === 'string' ? signing : `${signing.newest.id} ${JSON.stringify(signing.keys)}`
    texts.set(edge.siteId, `${texts.get(edge.siteId) ?? ''}\n${text}\n${keyText}`)
  }
  return texts
}

async function statementsOf(work: (db: TestApi['db']) => Promise<unknown>): Promise<string[]> {
  const texts = new Set<string>()
  const { db } = openDb(api.databaseUrl, ({ text }) => texts.add(text))
  await work(db)
  await db.$disconnect()
  return [...texts].filter((text) => /^\s*select/i.test(text))
}

/**
 * Returns the columns that the statements read, according to PostgreSQL: it records them for functions made of them.
 */
function columnsOf(statements: string[]): Promise<Column[]> {
  return api.db.$transaction(async (transaction) => {
    for (const [index, text] of statements.entries()) {
      await transaction.$executeRawUnsafe(`prepare probe_${index} as ${text}`)
      const [prepared] = await transaction.$queryRawUnsafe<{ types: string }[]>(
        `select array_to_string(parameter_types, ', ') as types from pg_prepared_statements where name = 'probe_${index}'`,
      )
      await transaction.$executeRawUnsafe(
        `create function probe_${index}(${prepared?.types}) returns void begin atomic ${text}; end`,
      )
    }
    const columns = await transaction.$queryRaw<Column[]>`
      select distinct attrelid::regclass::text as table, attname::text as column, atttypid::regtype::text as type,
        (select count(*) from pg_enum where enumtypid = atttypid) as labels, not attnotnull as nullable
      from pg_depend join pg_proc on pg_depend.objid = pg_proc.oid join pg_attribute on attrelid = refobjid and attnum = refobjsubid
      where classid = 'pg_proc'::regclass and refclassid = 'pg_class'::regclass and proname like 'probe_%' order by 1, 2`
    for (const index of statements.keys()) {
      await transaction.$executeRawUnsafe(`drop function probe_${index}`)
      await transaction.$executeRawUnsafe(`deallocate probe_${index}`)
    }
    return columns
  })
}

/** Allows any value: no foreign keys, no checks, and no triggers but those that wake. */
async function dropRules(): Promise<void> {
  const statements = await api.db.$queryRaw<{ text: string }[]>`
    select format('alter table %s drop constraint %I', conrelid::regclass, conname) as text from pg_constraint
    where contype in ('f', 'c') and connamespace = 'public'::regnamespace and conislocal and conparentid = 0
    union all select format('drop trigger %I on %s', tgname, tgrelid::regclass) from pg_trigger
    where not tgisinternal and tgparentid = 0 and tgname not like 'wake_edges%' and tgname <> 'make_state_version'`
  for (const { text } of statements) await api.db.$executeRawUnsafe(text)
}

/**
 * @param sql changes one row, `t`.
 * @returns that, the sites that this woke and whose versions it raised, and those whose state changed without that
 */
async function effectOf(sql: string, values: unknown[] = []) {
  woken.clear()
  const before = await readVersions()
  const rows = await inOrganization(api.serverDb, organizationId, (transaction) =>
    transaction.$queryRawUnsafe<{ row: Row }[]>(`${sql} returning to_jsonb(t) as row`, ...values),
  )
  expect(rows, sql).toHaveLength(1)
  await untilHeard()
  const versions = await readVersions()
  // By the versions: what was put back before may still wake.
  const heard = [...versions].flatMap(([siteId, version]) => (before.get(siteId) === version ? [] : siteId))
  expect([sql, heard.filter((siteId) => !woken.has(siteId))]).toEqual([sql, []])
  const now = await readStates()
  const changed = [...now].flatMap(([siteId, text]) => (states.get(siteId) === text ? [] : siteId))
  states = now
  return {
    row: rows[0]?.row ?? {},
    heard,
    isChanged: changed.length > 0,
    missed: changed.filter((siteId) => !heard.includes(siteId)),
  }
}

async function readVersions(): Promise<Map<string, bigint>> {
  const rows = await api.db.$queryRaw<{ siteId: string; version: bigint }[]>`
    select site_id::text as "siteId", sum(raised)::bigint as version from state_version group by 1`
  return new Map(rows.map(({ siteId, version }) => [siteId, version]))
}

/** Notifications come in the order of their transactions. */
async function untilHeard(): Promise<void> {
  sentinels += 1
  const payload = `sentinel:${sentinels}`
  const { promise, resolve } = Promise.withResolvers<void>()
  const unsubscribe = notifications.subscribe(payload, resolve)
  await api.db.$executeRaw`select pg_notify('bootfarm', ${payload})`
  await promise
  unsubscribe()
}

const rowsOf = (table: string) =>
  api.db.$queryRawUnsafe<{ row: Row }[]>(
    `select to_jsonb(t) as row from ${table} as t where ${table === 'organization' ? 'id' : 'organization_id'} = $1::uuid
      order by to_jsonb(t)::text limit ${rowsMax}`,
    organizationId,
  )

function whereOf(table: string, row: Row): string {
  return (keys.get(table) ?? []).map((name) => `${name} = '${row[name]}'`).join(' and ')
}

/** There is but one action of schedules so far. */
const isExempt = ({ table, column, labels }: Column) =>
  labels === 1n || wakesNobody.some((pattern) => pattern.test(`${table}.${column}`))

function otherValue({ column, type, labels, nullable }: Column): string {
  if (labels > 0n)
    return `(select v from unnest(enum_range(null::${type})) as v where v is distinct from "${column}" order by v desc limit 1)`
  if (nullable && type.startsWith('timestamp')) return `case when "${column}" is null then now() end`
  const made = otherValues.find(([pattern]) => pattern.test(type))
  if (!made) throw new Error(`${column} is of the type ${type}: how is it changed?`)
  return made[1](`"${column}"`)
}

const tablesRead = () => [...new Set(read.filter((column) => !isExempt(column)).map(({ table }) => table))]

test('what a state reads is known to its last column', () => {
  expect(tablesRead().length).toBeGreaterThanOrEqual(16)
  expect(read.length).toBeGreaterThan(100)
})

test('a change of any column that a state reads wakes the sites whose state it changes', limit, async () => {
  const problems: string[] = []
  for (const column of read.filter((one) => !isExempt(one))) {
    const rows = await rowsOf(column.table)
    let isHeard = false
    for (const { row } of rows) {
      const set = otherValue(column)
      const { table, column: name } = column
      const made = await effectOf(`update ${table} as t set "${name}" = ${set} where ${whereOf(table, row)}`)
      const { heard, missed } = made
      isHeard ||= heard.length > 0
      if (missed.length > 0)
        problems.push(`${column.table}.${column.column}: the state of a site that was not woken changed`)
      await putBack(column, { row, made: made.row })
      if (made.isChanged) states = await readStates()
    }
    if (!isHeard) problems.push(`${column.table}.${column.column} wakes nobody`)
  }
  expect([...new Set(problems)]).toEqual([])
})

async function putBack({ table, column }: Column, { row, made }: { row: Row; made: Row }): Promise<void> {
  await api.db.$executeRawUnsafe(
    `update ${table} set "${column}" = (jsonb_populate_record(null::${table}, $1::jsonb))."${column}" where ${whereOf(table, made)}`,
    JSON.stringify(row),
  )
}

test('a row that comes or goes wakes the sites whose state it changes', async () => {
  const problems: string[] = []
  for (const table of tablesRead()) {
    const outcomes = []
    for (const { row } of await rowsOf(table)) {
      outcomes.push(await effectOf(`delete from ${table} as t where ${whereOf(table, row)}`))
      outcomes.push(
        await effectOf(`insert into ${table} as t select * from jsonb_populate_record(null::${table}, $1::jsonb)`, [
          JSON.stringify(row),
        ]),
      )
    }
    if (outcomes.some(({ missed }) => missed.length > 0)) problems.push(`${table}: a site that was not woken changed`)
    if (outcomes.every(({ heard }) => heard.length === 0)) problems.push(`${table} wakes nobody`)
  }
  expect(problems).toEqual([])
})

test('what is no part of a state wakes nobody', async () => {
  const [deviceId] = (await rowsOf('device')).map(({ row }) => row.id)
  const [edgeId] = (await rowsOf('edge')).map(({ row }) => row.id)
  const [jobId] = (await rowsOf('store_job')).map(({ row }) => row.id)
  for (const sql of [
    `update device as t set last_boot_total_us = 7, personality = '{"a":"b"}' where id = '${deviceId}'`,
    `update edge as t set heartbeat_at = now(), heartbeat = heartbeat || '{"devicesBooting":7}', boot_epoch = 9 where id = '${edgeId}'`,
    `update store_job as t set progress_bytes = 7, state = 'running' where id = '${jobId}'`,
    `update device as t set name = name where id = '${deviceId}'`,
  ])
    expect([sql, await effectOf(sql)]).toEqual([sql, expect.objectContaining({ heard: [], missed: [] })])
})

test('a state changes by time alone at the instants that it names', async () => {
  const start = api.clock.read().getTime()
  for (const edge of edges) {
    let now = start
    const contentAt = async (ms: number) => {
      const { content, changesAt } = await readStateContent(api.db, edge, new Date(ms))
      return { text: canonicalJson(content), changesAt: changesAt?.getTime() ?? null }
    }
    for (let steps = 0; steps < 4; steps++) {
      const { text, changesAt } = await contentAt(now)
      const until = changesAt ?? now + 400 * 86_400_000
      for (const part of [0.25, 0.5, 0.75])
        expect((await contentAt(Math.floor(now + (until - now) * part))).text).toBe(text)
      expect((await contentAt(until - 1)).text).toBe(text)
      if (changesAt === null) break
      expect((await contentAt(changesAt)).text).not.toBe(text)
      now = changesAt
    }
  }
})

test('a site that has nothing of a change is not woken', async () => {
  const [row] = await rowsOf('vdisk_version')
  const versionId = row?.row.id
  const { heard } = await effectOf(`update vdisk_version as t set command_line = 'loud' where id = '${versionId}'`)
  expect(heard.length).toBeGreaterThan(0)
  expect(heard.length).toBeLessThan(edges.length)
})
