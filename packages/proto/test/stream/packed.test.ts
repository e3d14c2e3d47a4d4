import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { unpack } from './packed.ts'

/** `offset` and `length` are those of the READ that `packed` answers; without `bytes` it must be refused. */
interface Vector {
  name: string
  offset: number
  length: number
  packed: string
  bytes?: string
}

const vectors: Vector[] = JSON.parse(
  readFileSync(new URL('../../vectors/stream-packed-v1.json', import.meta.url), 'utf8'),
)

test.each(vectors)('a packed answer: $name', ({ packed, offset, length, bytes }) => {
  expect(unpack(Buffer.from(packed, 'hex'), offset, length)?.toString('hex')).toBe(bytes)
})
