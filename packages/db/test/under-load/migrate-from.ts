import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { expect, inject } from 'vitest'
import { wholeSchema } from '../../src/earlier-migrations.ts'
import { migrate, migrationNames, migrationsFolder } from '../../src/migrate.ts'
import { createEmptyDatabase } from '../test-database.ts'
import { ReleaseAtWork } from './release-at-work.ts'
import { schemaOf } from './schema-of.ts'

/** The states that a later migration starts from: all but the last. */
export const earlierStates = migrationNames().slice(0, -1)
/** Builds from before the first release: the schema is the same, but their own migrations are recorded. */
export const beforeFirstRelease = 'what builds before the first release recorded'

/**
 * Makes a database as it was after `state`, and applies the later migrations one by one while that release writes and
 * reads. Each connection has to get on between any two of them; what it had committed has to be there, and the schema
 * must be that of a new database.
 */
export async function migrateFrom(state: string): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-migrations-'))
  const database = await createEmptyDatabase()
  const { url, apiUrl } = database
  const takeUp = (name: string) =>
    cpSync(path.join(migrationsFolder, name), path.join(folder, name), { recursive: true })
  const last = state === beforeFirstRelease ? wholeSchema : state
  const release = new ReleaseAtWork(database)
  try {
    for (const name of migrationNames().filter((known) => known <= last)) takeUp(name)
    await migrate(url, { apiUrl, folder })
    if (state === beforeFirstRelease) await recordEarlier(url)
    await release.begin()
    for (const name of migrationNames().filter((known) => known > last)) {
      takeUp(name)
      expect(await migrate(url, { apiUrl, folder })).toEqual([name])
      await release.moves()
    }
    await release.end()
    expect(await release.lost()).toEqual({ devices: [], boots: [], acknowledgedSequences: [] })
    expect(release.committedBoots).toBeGreaterThan(0)
    expect(await schemaAt(url)).toEqual(await schemaAt(inject('templateUrl')))
  } finally {
    await release.end().catch(() => undefined)
    await database.drop()
    rmSync(folder, { recursive: true })
  }
}

/** The names and checksums that such a database has, a line each. */
export function earlierMigrations(): { name: string; checksum: string }[] {
  const lines = readFileSync(new URL('earlier-migrations.txt', import.meta.url), 'utf8')
    .trim()
    .split('\n')
  return lines.map((line) => {
    const [name = '', checksum = ''] = line.split(' ')
    return { name, checksum }
  })
}

/** Makes a database with the whole schema one of an earlier build. */
export async function recordEarlier(url: string, recorded = earlierMigrations()): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('delete from _prisma_migrations')
    await client.query(
      `insert into _prisma_migrations (id, migration_name, checksum, finished_at, applied_steps_count)
        select gen_random_uuid()::text, name, checksum, now(), 1 from jsonb_to_recordset($1::jsonb) as row (name text, checksum text)`,
      [JSON.stringify(recorded)],
    )
  } finally {
    await client.end()
  }
}

async function schemaAt(url: string): Promise<Record<string, string[]>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await schemaOf(client)
  } finally {
    await client.end()
  }
}
