import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { filesRead } from './uplink-reads.ts'

const vector = JSON.parse(readFileSync(new URL('../vectors/files-read-v1.json', import.meta.url), 'utf8'))

test('what an edge sends of a boot is read as it was sent', () => {
  expect(filesRead.parse(vector.report)).toEqual(vector.report)
})
