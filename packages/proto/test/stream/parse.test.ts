import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { emitStreamPacket } from './emit.ts'
import type { StreamPacket } from './packet.ts'
import { parseStreamPacket } from './parse.ts'
import { StreamPacketError } from './reader.ts'

interface Vector {
  name: string
  hex: string
  packet?: StreamPacket
  refused?: string
  /** The packet does not say what the parser skipped. */
  one_way?: boolean
}

const vectorsOf = (version: number): Vector[] =>
  JSON.parse(readFileSync(new URL(`../../vectors/stream-v${version}.json`, import.meta.url), 'utf8'))

describe.each([2, 3])('the golden packets of version %i', (version) => {
  const vectors = vectorsOf(version)
  test('there are enough of them', () => expect(vectors.length).toBeGreaterThanOrEqual(140))

  test.each(vectors.filter((vector) => vector.packet))('$name is parsed and emitted again', (vector) => {
    const packet = parseStreamPacket(Buffer.from(vector.hex, 'hex'))
    expect(packet).toEqual(vector.packet)
    if (!vector.one_way) expect(emitStreamPacket(packet).toString('hex')).toBe(vector.hex)
  })

  test.each(vectors.filter((vector) => vector.refused))('$name is refused', (vector) => {
    const parse = () => parseStreamPacket(Buffer.from(vector.hex, 'hex'))
    expect(parse).toThrow(StreamPacketError)
    expect(parse).toThrow(`stream packet refused: ${vector.refused}`)
  })
})
