import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readEnvironment } from '../env.ts'
import { DirectoryStore } from './object-store.ts'
import { openObjectStore } from './open-store.ts'
import { S3Store } from './s3-store.ts'

const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-open-store-'))
const keyFile = path.join(scratch, 'key')
afterAll(() => rmSync(scratch, { recursive: true }))

const open = (more: Record<string, string>) => {
  const needed = { DATABASE_URL: 'postgresql://x', BETTER_AUTH_SECRET: 'x'.repeat(32) }
  return openObjectStore(readEnvironment(Object.assign(needed, more)))
}
const bucket = { OBJECTS_S3_BUCKET: 'differences' }
const keys = { OBJECTS_S3_ACCESS_KEY_ID: 'a', OBJECTS_S3_SECRET_ACCESS_KEY: 'b' }

test('the environment chooses a directory, a bucket or none', async () => {
  writeFileSync(keyFile, 'secret\n')
  expect(await open({})).toBeNull()
  expect(await open({ BOOTFARM_OBJECTS: scratch })).toBeInstanceOf(DirectoryStore)
  expect(await open(bucket)).toBeInstanceOf(S3Store)
  expect(await open({ ...bucket, ...keys })).toBeInstanceOf(S3Store)
  const inFile = { OBJECTS_S3_ACCESS_KEY_ID: 'a', OBJECTS_S3_SECRET_ACCESS_KEY_FILE: keyFile }
  expect(await open({ ...bucket, ...inFile, OBJECTS_S3_ENDPOINT: 'https://s3.example.org' })).toBeInstanceOf(S3Store)
})

test.each([
  [{ ...bucket, BOOTFARM_OBJECTS: '/x' }, /BOOTFARM_OBJECTS and OBJECTS_S3_BUCKET exclude each other/],
  [{ OBJECTS_S3_ENDPOINT: 'https://s3.example.org' }, /OBJECTS_S3_ENDPOINT needs OBJECTS_S3_BUCKET/],
  [{ ...keys, BOOTFARM_OBJECTS: '/x' }, /OBJECTS_S3_ACCESS_KEY_ID needs OBJECTS_S3_BUCKET/],
  [{ ...bucket, OBJECTS_S3_ACCESS_KEY_ID: 'a' }, /OBJECTS_S3_SECRET_ACCESS_KEY is not set/],
  [{ ...bucket, OBJECTS_S3_SECRET_ACCESS_KEY: 'a' }, /OBJECTS_S3_ACCESS_KEY_ID is not set/],
  [{ ...bucket, ...keys, OBJECTS_S3_SECRET_ACCESS_KEY_FILE: keyFile }, /exclude each other/],
  [
    { ...bucket, OBJECTS_S3_ACCESS_KEY_ID: 'a', OBJECTS_S3_SECRET_ACCESS_KEY_FILE: path.join(scratch, 'absent') },
    /^Error: OBJECTS_S3_SECRET_ACCESS_KEY_FILE: ENOENT/,
  ],
])('settings %o are refused by name', async (more, text) => {
  await expect(async () => open(more as Record<string, string>)).rejects.toThrow(
    new RegExp(text.source.replace('^Error: ', '^')),
  )
})

test.each([
  [{ OBJECTS_S3_ENDPOINT: 'ftp://x' }, /OBJECTS_S3_ENDPOINT/],
  [{ OBJECTS_S3_BUCKET: 'A_b' }, /OBJECTS_S3_BUCKET must be/],
  [{ OBJECTS_S3_PATH_STYLE: 'yes' }, /OBJECTS_S3_PATH_STYLE/],
  [{ OBJECTS_S3_PREFIX: '/x' }, /OBJECTS_S3_PREFIX/],
])('the environment refuses %o', async (more, text) => {
  await expect(async () => open(more as Record<string, string>)).rejects.toThrow(text)
})
