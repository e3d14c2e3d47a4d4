import { rmSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  createEmptyDatabase,
  createTestDatabase,
  makeReachableFolder,
  type TestDatabase,
} from '../test/test-database.ts'
import { backUp } from './backup.ts'
import { restore } from './restore.ts'

const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
let lost: TestDatabase
let empty: TestDatabase
let folder: string

beforeEach(async () => {
  folder = makeReachableFolder()
  ;[lost, empty] = await Promise.all([createTestDatabase(), createEmptyDatabase()])
  await ask(
    lost,
    `insert into organization (id, slug, name) values ('${id(1)}', 'one', 'One'), ('${id(2)}', 'two', 'Two');
    insert into signing_key (organization_id, id, public_key, seed)
      values ('${id(1)}', '${id(11)}', 'one-1', '\\x01'), ('${id(2)}', '${id(21)}', 'two-1', '\\x02')`,
  )
})
afterEach(async () => {
  await Promise.all([lost.drop(), empty.drop()])
  rmSync(folder, { recursive: true })
})

async function ask(database: TestDatabase, sql: string): Promise<object[]> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    return (await client.query<object>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Rotates like the API: the previous key loses its private half. */
const rotate = (number: number) =>
  ask(
    lost,
    `insert into signing_key (organization_id, id, public_key, seed, previous_key, statement)
      values ('${id(1)}', '${id(10 + number)}', 'one-${number}', '\\x0${number}', 'one-${number - 1}', 'signed');
    update signing_key set seed = '' where public_key = 'one-${number - 1}'`,
  )
const keys = (database: TestDatabase) =>
  ask(database, `select public_key, encode(seed, 'hex') as seed from signing_key order by public_key`)
const inFolder = (name: string) => path.join(folder, name)
const restoreWith = (file: string, keysFile: string) =>
  restore({ ownerUrl: empty.url, apiUrl: empty.apiUrl, file: inFolder(file), keysFile: inFolder(keysFile) })

test('keys of after the backup take the place of its own, also from a later backup; others stay', async () => {
  await backUp(lost.url, inFolder('backup'))
  await rotate(2)
  await rotate(3)
  expect(await backUp(lost.url, inFolder('keys'), 'signing keys')).toBe(4)
  await ask(lost, `delete from organization where slug = 'two'`)
  await backUp(lost.url, inFolder('later'))
  const rotated = [
    { public_key: 'one-1', seed: '' },
    { public_key: 'one-2', seed: '' },
    { public_key: 'one-3', seed: '03' },
    { public_key: 'two-1', seed: '02' },
  ]
  await restoreWith('backup', 'keys')
  expect(await keys(empty)).toEqual(rotated)
  await empty.drop()
  empty = await createEmptyDatabase()
  await restoreWith('backup', 'later')
  expect(await keys(empty)).toEqual(rotated)
})

test('keys that are older than the backup change nothing', async () => {
  await backUp(lost.url, inFolder('keys'), 'signing keys')
  await rotate(2)
  await backUp(lost.url, inFolder('backup'))
  await restoreWith('backup', 'keys')
  expect(await keys(empty)).toEqual([
    { public_key: 'one-1', seed: '' },
    { public_key: 'one-2', seed: '02' },
    { public_key: 'two-1', seed: '02' },
  ])
})

test('keys of another history are refused, a file of keys is no backup, and nothing is restored', async () => {
  await backUp(lost.url, inFolder('backup'))
  await ask(lost, `update signing_key set public_key = 'another' where public_key = 'one-1'`)
  await backUp(lost.url, inFolder('keys'), 'signing keys')
  await expect(restoreWith('backup', 'keys')).rejects.toThrow(/does not go with this backup.*do not continue/)
  expect(await ask(empty, 'select from organization')).toEqual([])
  await expect(restoreWith('keys', 'keys')).rejects.toThrow(/holds signing keys alone: give it as --keys/)
})
