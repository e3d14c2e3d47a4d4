import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'

/** `units`: the index and blocks of each. */
interface Vector {
  name: string
  hex: string
  units?: [number, number][]
  refused?: boolean
}

const vectors: Vector[] = JSON.parse(
  readFileSync(new URL('../../vectors/stream-profiles-v2.json', import.meta.url), 'utf8'),
)

/** Parses the units of a document (STREAM.md, "Boot profile"); undefined where it is invalid. */
function unitsOf(document: Buffer): [number, number][] | undefined {
  const count = document.readUInt32BE(4)
  const size = Math.ceil((16 + count * 8) / 512) * 512
  if (document.toString('latin1', 0, 4) !== 'BFBP' || count > 8190 || size > document.length) return undefined
  const sum = document.readUInt32BE(8)
  if (crc32(Buffer.from(document.subarray(0, size)).fill(0, 8, 12)) !== sum) return undefined
  const units = Array.from({ length: count }, (_, index) => document.subarray(16 + index * 8, 24 + index * 8))
  if (units.some((unit) => unit.readUInt8(5) === 0 || unit.readUInt16BE(6) !== 0)) return undefined
  return units.map((unit) => [unit.readUIntBE(0, 5), unit.readUInt8(5)])
}

test.each(vectors)('the document of a boot profile $name', ({ hex, units, refused }) => {
  expect(unitsOf(Buffer.from(hex, 'hex'))).toEqual(refused ? undefined : units)
})
