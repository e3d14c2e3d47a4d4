import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../test/test-database.ts'
import { migrate } from './migrate.ts'

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
