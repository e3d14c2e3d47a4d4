import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createEmptyDatabase, type TestDatabase } from '../test/test-database.ts'
import { earlierMigrations, recordEarlier } from '../test/under-load/migrate-from.ts'
import { hasEarlier, isApplied, wholeSchema } from './earlier-migrations.ts'
import { migrate, migrationNames, migrationsFolder } from './migrate.ts'

const later = migrationNames().filter((name) => name > wholeSchema)
let folder: string
let database: TestDatabase

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-migrations-'))
  cpSync(path.join(migrationsFolder, wholeSchema), path.join(folder, wholeSchema), { recursive: true })
})
beforeEach(async () => {
  database = await createEmptyDatabase()
  await migrate(database.url, { apiUrl: database.apiUrl, folder })
  return () => database.drop()
})
afterAll(() => rmSync(folder, { recursive: true }))

test('a database with all migrations of earlier builds is carried over, once', async () => {
  await recordEarlier(database.url)
  expect(await migrate(database.url, { apiUrl: database.apiUrl })).toEqual(later)
  expect(await migrate(database.url, { apiUrl: database.apiUrl })).toEqual([])
})

test.each([
  ['some', earlierMigrations().slice(0, -1)],
  ['one only', earlierMigrations().slice(0, 1)],
  ['others', earlierMigrations().map((one, index) => (index === 7 ? { ...one, checksum: 'edited' } : one))],
])(
  'a database with %s of them is refused with a sentence that says what to do, and stays as it is',
  async (_name, some) => {
    await recordEarlier(database.url, some)
    const sentence = new RegExp(
      `has ${some.length} migrations of those builds, where all 38 .* Start the last such build`,
    )
    await expect(migrate(database.url, { apiUrl: database.apiUrl })).rejects.toThrow(sentence)
    await expect(migrate(database.url, { apiUrl: database.apiUrl })).rejects.toThrow(sentence)
  },
)

test('later migrations beside them make no difference, nor does a new database', () => {
  expect(hasEarlier([...earlierMigrations(), { name: later[0] ?? '', checksum: 'any' }])).toBe(true)
  expect(hasEarlier([{ name: wholeSchema, checksum: 'any' }])).toBe(false)
  expect(hasEarlier([])).toBe(false)
})

test('a database that has the whole schema by the file as it was first written is up to date', () => {
  const checksum = '329bfca35c62ba821abb8a746bb1a998ce769a2c9443e06e7f7332abf773dc9d'
  expect(isApplied({ name: wholeSchema, checksum }, 'now')).toBe(true)
  expect(isApplied({ name: wholeSchema, checksum: 'edited' }, 'now')).toBe(false)
  expect(isApplied({ name: later[0] ?? '', checksum }, 'now')).toBe(false)
})
