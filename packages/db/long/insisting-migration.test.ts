import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { migrate } from '../src/migrate.ts'
import { createEmptyDatabase } from '../test/test-database.ts'

const waiting = `select from pg_locks where not granted and mode = 'AccessExclusiveLock'
  and database = (select oid from pg_database where datname = current_database())`

test('a migration is applied although somebody always holds one of its tables and waits for another', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-migrations-'))
  const write = (name: string, sql: string) => {
    mkdirSync(path.join(folder, name))
    writeFileSync(path.join(folder, name, 'migration.sql'), sql)
  }
  const database = await createEmptyDatabase()
  const [reader, watcher] = [0, 1].map(() => new pg.Client({ connectionString: database.url })) as [
    pg.Client,
    pg.Client,
  ]
  try {
    write('1_first', 'create table a (x int); create table b (x int);')
    await migrate(database.url, { folder })
    write('2_second', 'alter table a add column y int; alter table b add column y int;')
    for (const client of [reader, watcher]) await client.connect()
    let isOver = false
    const holding = async () => {
      while (!isOver) {
        await reader.query('begin; select from b')
        while (!(isOver || (await watcher.query(waiting)).rowCount));
        // The migration has `a` and waits for `b`: either gives way.
        await reader.query('select from a').catch((error: { code: string }) => expect(error.code).toBe('40P01'))
        await reader.query('rollback')
      }
    }
    const held = holding()
    try {
      expect(await migrate(database.url, { folder })).toEqual(['2_second'])
    } finally {
      isOver = true
      await held
    }
  } finally {
    await Promise.all([reader.end(), watcher.end()])
    await database.drop()
    rmSync(folder, { recursive: true })
  }
})
