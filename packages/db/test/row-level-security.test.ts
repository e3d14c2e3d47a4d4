import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDb, type Db } from '../src/client.ts'
import { inOrganization, type TenantDb } from '../src/in-organization.ts'
import { fillTenantTables, readTenantTables, type TenantTable } from './tenant-rows.ts'
import { createTestDatabase, type TestDatabase } from './test-database.ts'

const own = randomUUID()
const foreign = randomUUID()
/** SQLSTATE insufficient_privilege: what row-level security and missing rights both answer. */
const refused = '42501'

let database: TestDatabase
let owner: pg.Client
let api: pg.Client
let db: Db
let tables: TenantTable[]

beforeAll(async () => {
  database = await createTestDatabase()
  owner = await connect(database.url)
  api = await connect(database.apiUrl)
  db = createDb(database.apiUrl)
  await owner.query(`select ensure_boot_partitions('2026-11-20', '2026-11-20')`)
  tables = await readTenantTables(owner)
  await fillTenantTables(owner, tables, [own, foreign])
})
afterAll(async () => {
  await Promise.all([owner.end(), api.end(), db.$disconnect()])
  await database.drop()
})

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return client
}

/** Runs one statement in a transaction of an organization (null: of none) and takes it back. */
async function attempt(organizationId: string | null, sql: string, values: unknown[] = []) {
  await api.query('begin')
  try {
    if (organizationId !== null)
      await api.query(`select set_config('bootfarm.organization_id', $1, true)`, [organizationId])
    const { rows, rowCount } = await api.query(sql, values)
    return { rows: rows as Record<string, unknown>[], count: rowCount ?? 0 }
  } catch (error) {
    return { rows: [], count: 0, code: (error as { code?: string }).code }
  } finally {
    await api.query('rollback')
  }
}

/** For each table what it does wrong; nothing where all is well. */
async function problems(check: (table: TenantTable) => Promise<unknown>, expected: unknown): Promise<unknown[]> {
  const found = []
  for (const table of tables) {
    const result = await check(table)
    if (JSON.stringify(result) !== JSON.stringify(expected)) found.push({ table: table.name, result })
  }
  return found
}

describe('in every table with rows of organizations', () => {
  test('a statement without any condition sees the own organization’s rows and no others', async () => {
    expect(tables.length).toBeGreaterThan(20)
    const ids = async ({ name, key }: TenantTable) =>
      (await attempt(own, `select "${key}" as id from "${name}"`)).rows.map(({ id }) => id)
    expect(await problems(ids, [own])).toEqual([])
  })

  test.each([
    ['no organization', null],
    ['an empty setting', ''],
    ['an organization that is not there', randomUUID()],
  ])('%s sees nothing', async (_name, organizationId) => {
    const count = async ({ name }: TenantTable) => (await attempt(organizationId, `select 1 from "${name}"`)).count
    expect(await problems(count, 0)).toEqual([])
  })

  test('another organization’s row is neither changed nor removed', async () => {
    const changed = async ({ name, key }: TenantTable) => {
      const update = await attempt(own, `update "${name}" set "${key}" = "${key}" where "${key}" = $1`, [foreign])
      const removal = await attempt(own, `delete from "${name}" where "${key}" = $1`, [foreign])
      return [update.count, removal.count]
    }
    expect(await problems(changed, [0, 0])).toEqual([])
  })

  test('a row is not written into another organization, nor moved to one', async () => {
    const written = async ({ name, key }: TenantTable) => {
      const { rows } = await owner.query(`select to_jsonb(row) as row from "${name}" as row where "${key}" = $1`, [
        foreign,
      ])
      const copy = `insert into "${name}" select * from jsonb_populate_record(null::"${name}", $1)`
      const insertion = await attempt(own, copy, [JSON.stringify(rows[0]?.row)])
      const move = await attempt(own, `update "${name}" set "${key}" = $1`, [foreign])
      const withoutAny = await attempt(null, copy, [JSON.stringify(rows[0]?.row)])
      return [insertion.code, move.code, withoutAny.code]
    }
    expect(await problems(written, [refused, refused, refused])).toEqual([])
  })

  test('is protected for its owner, too, and no further policy lets anybody in', async () => {
    const { rows } = await owner.query(
      `
      select relname, relrowsecurity, relforcerowsecurity,
        (select array_agg(polname::text order by polname) from pg_policy where polrelid = pg_class.oid and polpermissive) as policies
      from pg_class where relname = any($1) and relnamespace = 'public'::regnamespace`,
      [tables.map(({ name }) => name)],
    )
    const policies = ['own_organization', 'table_owner']
    for (const { relname, ...row } of rows)
      expect({ relname, ...row }).toEqual({
        relname,
        relrowsecurity: true,
        relforcerowsecurity: true,
        policies,
      })
    expect(rows).toHaveLength(tables.length)
  })
})

test('a partition is reached through its table alone', async () => {
  const { rows } = await owner.query(`
    select relname from pg_class where relispartition and relkind in ('r', 'p') and relnamespace = 'public'::regnamespace
      and (has_table_privilege('bootfarm_api', oid, 'select, insert, update, delete, truncate, references, trigger')
        or has_any_column_privilege('bootfarm_api', oid, 'select, insert, update'))`)
  expect(rows).toEqual([])
})

describe('the role of the API', () => {
  test('owns nothing, bypasses nothing and may become nobody else', async () => {
    const { rows } = await owner.query(
      `select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,
        (select count(*)::int from pg_shdepend where refobjid = pg_roles.oid and deptype = 'o') as owned,
        (select array_agg(pg_has_role(pg_roles.oid, other.oid, 'set')) from pg_roles as other where other.oid <> pg_roles.oid
          and pg_has_role(pg_roles.oid, other.oid, 'set')) as becomes
      from pg_roles where rolname = $1`,
      [new URL(database.apiUrl).username],
    )
    const none = {
      rolsuper: false,
      rolbypassrls: false,
      rolcreaterole: false,
      rolcreatedb: false,
      rolreplication: false,
    }
    expect(rows).toEqual([{ ...none, owned: 0, becomes: null }])
  })

  test.each([
    'set role bootfarm_api',
    'set role postgres',
    'set session authorization postgres',
    'create table x ()',
    'create temporary table x ()',
    'create schema x',
    'create function x() returns int language sql as $$ select 1 $$',
    'truncate device cascade',
    'alter table device disable row level security',
    'drop policy own_organization on device',
    'create policy x on device using (true)',
    'alter table device no force row level security',
    `select protect_tenant_table('device')`,
    'select * from _prisma_migrations',
    'update audit_entry set action = action',
    'delete from audit_entry',
    'set session_replication_role = replica',
    `copy device to program 'true'`,
    `select pg_read_file('PG_VERSION')`,
    'select rolpassword from pg_authid',
  ])('may not %s', async (sql) => {
    expect(await attempt(own, sql)).toMatchObject({ code: refused })
  })

  test('switching row security off makes statements fail, not see more', async () => {
    await api.query('set row_security = off')
    try {
      expect(await attempt(own, 'select * from device')).toMatchObject({ code: refused })
    } finally {
      await api.query('reset row_security')
    }
  })

  test('reads and writes a table of a later migration, and reaches no schema that is not its own', async () => {
    await owner.query('create table later (organization_id uuid, id serial)')
    await owner.query(`create schema elsewhere; create table elsewhere.hidden ()`)
    expect(await attempt(own, 'insert into later (organization_id) values ($1) returning id', [own])).toMatchObject({
      count: 1,
    })
    expect(await attempt(own, 'select * from elsewhere.hidden')).toMatchObject({ code: refused })
    await owner.query('create function later_function() returns int language sql as $$ select 1 $$')
    expect(await attempt(own, 'select later_function()')).toMatchObject({ code: refused })
    await owner.query('drop table later; drop function later_function; drop schema elsewhere cascade')
  })

  test('may call these functions that see all organizations, each with its search path pinned', async () => {
    const { rows } = await owner.query(`
      select oid::regprocedure::text as name, proconfig from pg_proc
      where prosecdef and has_function_privilege('bootfarm_api', oid, 'execute') order by 1`)
    for (const { name, proconfig } of rows)
      expect({ name, proconfig }).toEqual({ name, proconfig: ['search_path=pg_catalog, pg_temp'] })
    expect(rows.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'edge_identity(uuid)',
        'join_token_organization(text)',
        'memberships_of(uuid)',
        'organization_ids()',
      ]),
    )
  })
})

describe('the organization of a transaction', () => {
  const farms = (client: Pick<Db, '$queryRaw'>) =>
    client.$queryRaw<
      { id: string; pid: number }[]
    >`select organization_id::text as id, pg_backend_pid() as pid from farm`
  const pidOf = async () => (await db.$queryRaw<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid

  test('is the requested one, even with many in progress at once', async () => {
    const asked = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? own : foreign))
    const seen = await Promise.all(asked.map((id) => inOrganization(db, id, farms)))
    expect(seen.map((rows) => rows.map(({ id }) => id))).toEqual(asked.map((id) => [id]))
  })

  test('is that of each transaction, also where they share a connection’s prepared statements', async () => {
    const named = (tenant: TenantDb) =>
      tenant.$queryRaw<{ id: string }[]>`select organization_id::text as id from farm where id is not null and ${1} = 1`
    const asked = Array.from({ length: 24 }, (_, index) => (index % 2 === 0 ? own : foreign))
    for (const id of asked) expect(await inOrganization(db, id, named)).toEqual([{ id }])
    const names = await db.$queryRaw<{ name: string }[]>`
      select name from pg_prepared_statements where statement like ${'%from farm where id is not null%'}`
    expect(names).toHaveLength(1)
  })

  test('holds for statements that are asked at once, which are kept or taken back together', async () => {
    const [name, another] = [randomUUID(), randomUUID()]
    const create = (tenant: TenantDb, farm: string) =>
      tenant.farm.create({ data: { organizationId: own, name: farm }, select: { organizationId: true } })
    const made = await inOrganization(db, own, (tenant) =>
      Promise.all([create(tenant, name), farms(tenant), create(tenant, another)]),
    )
    expect(made[1].every(({ id }) => id === own)).toBe(true)
    const count = async () => (await owner.query('select 1 from farm where name = any($1)', [[name, another]])).rowCount
    expect(await count()).toBe(2)
    await owner.query('delete from farm where name = any($1)', [[name, another]])
    const failing = inOrganization(db, own, (tenant) =>
      Promise.all([create(tenant, name), tenant.$executeRaw`select 1 / ${0}::integer`, create(tenant, another)]),
    )
    await expect(failing).rejects.toThrow()
    expect(await count()).toBe(0)
    expect(await inOrganization(db, own, farms)).toHaveLength(1)
  })

  test('holds for what a service does in a transaction of its own', async () => {
    const rows = await inOrganization(db, own, (tenant) => tenant.$transaction((transaction) => farms(transaction)))
    expect(rows.map(({ id }) => id)).toEqual([own])
  })

  test.each<[string, () => Promise<unknown>]>([
    ['a commit', () => inOrganization(db, own, farms)],
    ['an error of the service', () => inOrganization(db, own, async () => Promise.reject(new Error('refused')))],
    ['an error of the database', () => inOrganization(db, own, (tenant) => tenant.$executeRaw`select 1 / 0`)],
    ['a time-out', () => timedOut()],
    [
      'a killed connection',
      () => inOrganization(db, own, (tenant) => tenant.$executeRaw`select pg_terminate_backend(pg_backend_pid())`),
    ],
  ])('is gone from its connection after %s', async (_name, work) => {
    await work().catch(() => undefined)
    // All connections that the pool has, at once.
    const settings = await Promise.all(
      Array.from(
        { length: 10 },
        () => db.$queryRaw<{ setting: string | null }[]>`
        select nullif(current_setting('bootfarm.organization_id', true), '') as setting from pg_sleep(0)`,
      ),
    )
    expect(settings.flat().filter(({ setting }) => setting !== null)).toEqual([])
    expect(await farms(db)).toEqual([])
    expect(await pidOf()).toBeGreaterThan(0)
  })

  /** Asks until its time is over. */
  function timedOut(): Promise<unknown> {
    const goOn = async (tenant: TenantDb) => {
      for (;;) await tenant.$queryRaw`select 1`
    }
    return inOrganization(db, own, goOn, { timeoutMs: 50 })
  }

  test('that finds all connections taken is refused after its time, and leaves none behind', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const begun: Promise<unknown>[] = []
    // Each has its share of the ten connections; the last one not the whole of it.
    const [others, third] = [Array.from({ length: 4 }, () => foreign), randomUUID()]
    const holding = [own, own, own, own, ...others, third, third].map((organizationId) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      begun.push(promise)
      return inOrganization(db, organizationId, async (tenant) => {
        await farms(tenant)
        resolve()
        await released
      })
    })
    await Promise.all(begun)
    for (const organizationId of [own, third])
      await expect(inOrganization(db, organizationId, farms, { maxWaitMs: 20 })).rejects.toMatchObject({
        code: 'P2028',
      })
    release()
    await Promise.all(holding)
    const seen = await Promise.all(Array.from({ length: 30 }, () => inOrganization(db, foreign, farms)))
    expect(seen).toHaveLength(30)
    const { rows } = await owner.query(
      `select count(*)::int as count from pg_stat_activity where datname = current_database() and state like 'idle in %'`,
    )
    expect(rows).toEqual([{ count: 0 }])
  })

  test('takes no second connection, which others like it could wait for until the end', async () => {
    const nested = (work: (tenant: TenantDb) => Promise<unknown>) => inOrganization(db, own, work)
    await expect(nested(() => inOrganization(db, own, farms))).rejects.toThrow(/A transaction is open here/)
    await expect(nested(() => farms(db))).rejects.toThrow(/A transaction is open here/)
    const { promise: committed, resolve: commit } = Promise.withResolvers<void>()
    const begun: { later?: Promise<unknown> } = {}
    await nested(async (tenant) => {
      await farms(tenant)
      begun.later = committed.then(() => inOrganization(db, own, farms))
    })
    commit()
    expect(await begun.later).toHaveLength(1)
  })

  test('is kept whole or not at all: what fails last takes back what was written first', async () => {
    const name = randomUUID()
    const writing = inOrganization(db, own, async (tenant) => {
      await tenant.$transaction((transaction) => transaction.farm.create({ data: { organizationId: own, name } }))
      throw new Error('refused')
    })
    await expect(writing).rejects.toThrow('refused')
    expect((await owner.query('select 1 from farm where name = $1', [name])).rowCount).toBe(0)
  })
})
