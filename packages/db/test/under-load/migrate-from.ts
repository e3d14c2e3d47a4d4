import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { expect, inject } from 'vitest'
import { migrate, migrationNames, migrationsFolder } from '../../src/migrate.ts'
import { createEmptyDatabase } from '../test-database.ts'
import { ReleaseAtWork } from './release-at-work.ts'
import { schemaOf } from './schema-of.ts'

const tenancy = '20261121120000_tenancy'
const partitions = '20261121140000_boot_partitions'
/** The states that a later migration starts from: all but the last. */
export const earlierStates = migrationNames().slice(0, -1)

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
  const release = new ReleaseAtWork(database, {
    isBound: state >= tenancy,
    hasPartitions: state >= partitions,
  })
  try {
    for (const name of migrationNames().filter((known) => known <= state)) takeUp(name)
    await migrate(url, { apiUrl, folder })
    await release.begin()
    for (const name of migrationNames().filter((known) => known > state)) {
      takeUp(name)
      expect(await migrate(url, { apiUrl, folder })).toEqual([name])
      await release.moves()
    }
    await release.end()
    expect(await release.lost()).toEqual({ devices: [], boots: [], acknowledgedSequences: [] })
    expect(release.committedBoots).toBeGreaterThan(0)
    // What its own comment says: edges whose reports are refused send them again to the release that comes.
    if (state >= partitions) expect(release.refusedBoots).toBe(0)
    else expect(release.refusedBoots).toBeGreaterThan(0)
    expect(await schemaAt(url)).toEqual(await schemaAt(inject('templateUrl')))
  } finally {
    await release.end().catch(() => undefined)
    await database.drop()
    rmSync(folder, { recursive: true })
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
