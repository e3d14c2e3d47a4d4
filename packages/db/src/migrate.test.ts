import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../test/test-database.ts'
import { migrate, migrationsFolder } from './migrate.ts'

const prismaScript = fileURLToPath(new URL('../../../scripts/prisma.mjs', import.meta.url))
let database: TestDatabase
let folder: string

beforeAll(async () => {
  database = await createTestDatabase()
  folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-migrations-'))
})
afterAll(async () => {
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

function prisma(...args: string[]) {
  return promisify(execFile)(process.execPath, [prismaScript, ...args], {
    env: { ...process.env, DATABASE_URL: database.url },
  })
}

function writeMigration(name: string, sql: string): void {
  mkdirSync(path.join(folder, name), { recursive: true })
  writeFileSync(path.join(folder, name, 'migration.sql'), sql)
}

function emptyDatabaseUrl(name: string): string {
  const url = new URL(inject('templateUrl'))
  url.pathname = `/${name}`
  return url.toString()
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function connections(url: string): Promise<[pg.Client, pg.Client]> {
  const made = ['a reader', 'a writer'].map(
    (name) => new pg.Client({ connectionString: url, application_name: name }),
  ) as [pg.Client, pg.Client]
  for (const client of made) await client.connect()
  return made
}

/** Resolves when somebody waits for a table. */
async function untilWaiting(client: pg.Client): Promise<void> {
  const waiting = `select from pg_locks where not granted and mode = 'AccessExclusiveLock'
    and database = (select oid from pg_database where datname = current_database())`
  while (!(await client.query(waiting)).rowCount);
}

describe('migrations', () => {
  test('give what the schema says', async () => {
    const diff = ['migrate', 'diff', '--from-config-datasource', '--to-schema', 'prisma/schema', '--exit-code']
    const { stdout } = await prisma(...diff)
    expect(stdout).toContain('No difference detected')
  })

  test('are recorded as the Prisma CLI records them', async () => {
    const { stdout } = await prisma('migrate', 'status')
    expect(stdout).toContain('Database schema is up to date')
  })

  test('make the database, apply each once, and two programs at once do not meet', async () => {
    writeMigration('1_first', 'create table a (x int); insert into a values (1);')
    writeMigration('2_second', 'insert into a values (2);')
    const url = emptyDatabaseUrl('made_by_migrate')
    const applied = await Promise.all([migrate(url, { folder }), migrate(url, { folder })])
    expect(applied.flat().sort()).toEqual(['1_first', '2_second'])
    expect(await query(url, 'select x from a order by x')).toEqual([{ x: 1 }, { x: 2 }])
    expect(await migrate(url, { folder })).toEqual([])
  })

  test('one that fails changes nothing, and the next start refuses to go on', async () => {
    writeMigration('1_first', 'create table a (x int); insert into a values (1);')
    writeMigration('2_second', 'insert into a values (2); insert into absent values (1);')
    const url = emptyDatabaseUrl('failed_migration')
    await expect(migrate(url, { folder })).rejects.toThrow(/Migration 2_second failed.*absent/)
    expect(await query(url, 'select x from a')).toEqual([{ x: 1 }])
    await expect(migrate(url, { folder })).rejects.toThrow(/2_second failed earlier/)
  })

  test('one that was cut off in its midst is applied by the next start', async () => {
    const [first, second] = ['create table a (x int);', 'insert into a values (1);']
    writeMigration('1_first', first)
    writeMigration('2_second', `${second} select pg_terminate_backend(pg_backend_pid());`)
    const url = emptyDatabaseUrl('cut_off_migration')
    await expect(migrate(url, { folder })).rejects.toThrow(/2_second/)
    expect(await query(url, 'select x from a')).toEqual([])
    writeMigration('2_second', second)
    expect(await migrate(url, { folder })).toEqual(['2_second'])
    expect(await query(url, 'select x from a')).toEqual([{ x: 1 }])
  })

  test('one that waits for a table lets those pass who come later, and is applied when the table is free', async () => {
    writeMigration('1_first', 'create table a (x int);')
    rmSync(path.join(folder, '2_second'), { recursive: true, force: true })
    const url = emptyDatabaseUrl('waiting_migration')
    await migrate(url, { folder })
    writeMigration('2_second', 'alter table a add column y int;')
    const [reader, writer] = await connections(url)
    const blocked: string[] = []
    try {
      await reader.query('begin; select from a')
      const migrating = migrate(url, { folder, onBlocked: (text) => blocked.push(text) })
      await untilWaiting(writer)
      // Behind it in the queue, and done while the reader still holds the table.
      await writer.query(`set statement_timeout = '60s'`)
      await writer.query('insert into a values (1)')
      await untilWaiting(writer)
      await writer.query('insert into a values (2)')
      while (blocked.length === 0) await writer.query('select from a')
      await reader.query('commit')
      expect(await migrating).toEqual(['2_second'])
    } finally {
      await Promise.all([reader.end(), writer.end()])
    }
    expect(await query(url, 'select x, y from a order by x')).toEqual([
      { x: 1, y: null },
      { x: 2, y: null },
    ])
    expect(blocked).toEqual([
      expect.stringMatching(/^Migration 2_second needs tables.*process \d+ \(a reader\).*tried again/),
    ])
  })

  test('one that gets no table within its limit says who holds it and changes nothing, and the next start goes on', async () => {
    writeMigration('1_first', 'create table a (x int);')
    rmSync(path.join(folder, '2_second'), { recursive: true, force: true })
    const url = emptyDatabaseUrl('late_migration')
    await migrate(url, { folder })
    writeMigration('2_second', 'create table b (x int); alter table a add column y int;')
    const [reader, writer] = await connections(url)
    try {
      await reader.query('begin; select from a')
      await expect(migrate(url, { folder, lockLimitMs: 0 })).rejects.toThrow(
        /^Migration 2_second needs tables that others are using.*\(a reader\).*changed nothing/,
      )
      expect((await writer.query(`select to_regclass('b') as b`)).rows).toEqual([{ b: null }])
    } finally {
      await Promise.all([reader.end(), writer.end()])
    }
    expect(await migrate(url, { folder })).toEqual(['2_second'])
  })

  test('one that was edited after it was applied is refused', async () => {
    writeMigration('1_first', 'create table a (x int);')
    rmSync(path.join(folder, '2_second'), { recursive: true, force: true })
    const url = emptyDatabaseUrl('edited_migration')
    await migrate(url, { folder })
    writeMigration('1_first', 'create table a (x bigint);')
    await expect(migrate(url, { folder })).rejects.toThrow(/1_first was edited/)
  })
})

/** Of each kind two, the second of each in the trash where it can be there. */
const searchedObjects = `
  insert into organization (id, slug, name) values ('00000000-0000-4000-8000-000000000001', 'searched', 'Searched');
  create function pg_temp.made(number int) returns uuid language sql return format('00000000-0000-4000-8000-%s', lpad(number::text, 12, '0'))::uuid;
  insert into farm (organization_id, id, name) values (pg_temp.made(1), pg_temp.made(2), 'Farm');
  insert into deletion (organization_id, id, kind, object_id, object_name, counts, deleted_at, deleted_by_name, purge_at)
    values (pg_temp.made(1), pg_temp.made(3), 'site', pg_temp.made(11), 'x', '{}', now(), 'x', now());
  insert into site (organization_id, id, farm_id, name, time_zone, deletion_id)
    select pg_temp.made(1), pg_temp.made(10 + n), pg_temp.made(2), 'Hall ÄÖ-North 7.' || n, 'UTC', case n when 1 then pg_temp.made(3) end
    from generate_series(0, 1) as n;
  insert into collection (organization_id, id, site_id, name, deletion_id)
    select pg_temp.made(1), pg_temp.made(20 + n), pg_temp.made(10 + n), 'Lab_' || n, case n when 1 then pg_temp.made(3) end
    from generate_series(0, 1) as n;
  insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at)
    select pg_temp.made(1), pg_temp.made(30 + n), pg_temp.made(10 + n), 'edge' || n, n, 'x86_64', '1', now() from generate_series(0, 1) as n;
  insert into vdisk (organization_id, id, farm_id, name, deletion_id)
    select pg_temp.made(1), pg_temp.made(40 + n), pg_temp.made(2), 'Linux desktop ' || n, case n when 1 then pg_temp.made(3) end
    from generate_series(0, 1) as n;
  insert into vdisk_version (organization_id, id, vdisk_id, number, size_bytes, disk_path, command_line, labels, deletion_id)
    select pg_temp.made(1), pg_temp.made(50 + n), pg_temp.made(40 + n), 1, 512, 'a', '', '{Beta,"Long name"}', case n when 1 then pg_temp.made(3) end
    from generate_series(0, 1) as n;
  insert into device (organization_id, id, site_id, collection_id, name, mac, tags, last_boot_ip, last_boot_machine_id, deletion_id)
    select pg_temp.made(1), pg_temp.made(60 + n), pg_temp.made(10 + n), pg_temp.made(20 + n), 'LAB-pc-0' || n, '02:bf:00:00:0a:0' || n, '{SN-1,Sn-1}',
      '192.0.2.' || n, pg_temp.made(70), case n when 1 then pg_temp.made(3) end
    from generate_series(0, 1) as n;`

test('what people search by is written for objects that were there before as for new ones', async () => {
  const { url, drop } = await createTestDatabase()
  const keys = () => query(url, 'select kind, rank, key, object_id from search_key order by 1, 2, 3, 4')
  try {
    await query(url, searchedObjects)
    const written = (await keys()) as { kind: string; key: string }[]
    expect(new Set(written.map(({ kind }) => kind)).size).toBe(6)
    expect(written.map(({ key }) => key)).toEqual(
      expect.arrayContaining(['hall äö-north 7.0', 'north 7.0', 'pc-00', 'sn-1']),
    )
    await query(url, 'delete from search_key')
    const backfill = path.join(migrationsFolder, '20261129020100_search_keys_of_objects', 'migration.sql')
    await query(url, readFileSync(backfill, 'utf8'))
    expect(await keys()).toEqual(written)
  } finally {
    await drop()
  }
})

describe('a migration outside of a transaction', () => {
  const url = emptyDatabaseUrl(`outside_${process.pid}`)
  const outside = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-outside-'))
  const write = (name: string, sql: string) => {
    mkdirSync(path.join(outside, name), { recursive: true })
    writeFileSync(path.join(outside, name, 'migration.sql'), sql)
  }
  const mark = '-- outside of a transaction'
  const validity = () =>
    query(url, `select indisvalid as is_valid from pg_index where indexrelid = to_regclass('part_name')`)
  const recorded = () => query(url, `select migration_name from _prisma_migrations where migration_name = '2_index'`)

  beforeAll(async () => {
    write('1_part', `CREATE TABLE part (name text); INSERT INTO part VALUES ('a'), ('a');`)
    await migrate(url, { folder: outside })
  })
  afterAll(async () => {
    const client = new pg.Client({ connectionString: emptyDatabaseUrl('postgres') })
    await client.connect()
    await client.query(`drop database ${new URL(url).pathname.slice(1)} with (force)`)
    await client.end()
    rmSync(outside, { recursive: true })
  })

  test('leaves no trace but an invalid index when it fails, and builds that again at the next start', async () => {
    write('2_index', `${mark}\nCREATE UNIQUE INDEX CONCURRENTLY part_name ON part (name);\n`)
    await expect(migrate(url, { folder: outside })).rejects.toThrow(/2_index failed, and is tried again/)
    expect([await validity(), await recorded()]).toEqual([[{ is_valid: false }], []])
    await query(url, `delete from part where ctid = (select min(ctid) from part)`)
    expect(await migrate(url, { folder: outside })).toEqual(['2_index'])
    expect([await validity(), (await recorded()).length]).toEqual([[{ is_valid: true }], 1])
    expect(await migrate(url, { folder: outside })).toEqual([])
  })

  test('waits for a writer whose transaction is open, and blocks no other meanwhile', async () => {
    write('3_more', `${mark}\nCREATE INDEX CONCURRENTLY part_more ON part (name);\n`)
    const [open, other] = await connections(url)
    await open.query(`begin; insert into part values ('open')`)
    const migrating = migrate(url, { folder: outside })
    await expect
      .poll(
        async () =>
          (
            await other.query(
              `select from pg_stat_activity where query ilike '%concurrently part_more%' and wait_event_type = 'Lock'`,
            )
          ).rowCount,
      )
      .toBe(1)
    await other.query(`insert into part values ('other')`)
    await open.query('commit')
    expect(await migrating).toEqual(['3_more'])
    for (const client of [open, other]) await client.end()
  })

  test('holds nothing but statements about indexes', async () => {
    write('4_wrong', `${mark}\nDELETE FROM part;\n`)
    await expect(migrate(url, { folder: outside })).rejects.toThrow(/there is only CREATE INDEX CONCURRENTLY/)
    rmSync(path.join(outside, '4_wrong'), { recursive: true })
  })
})
