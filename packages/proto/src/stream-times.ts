import { type StreamReadTimes, streamReadTimeKinds } from './stream-packet.ts'
import { check, type Reader, refuse } from './stream-reader.ts'

/** The read times of a REPORT (STREAM.md, "Where time went"). */

const fixedSize = 16
const buckets = 24

export function parseReadTimes(reader: Reader, count: number): StreamReadTimes[] {
  check(count <= streamReadTimeKinds.length, 'bad_value')
  const all: StreamReadTimes[] = []
  let before = -1
  for (let index = 0; index < count; index += 1) {
    const one = parseOne(reader)
    const kind = streamReadTimeKinds.indexOf(one.kind)
    check(kind > before, 'bad_value')
    before = kind
    all.push(one)
  }
  return all
}

function parseOne(reader: Reader): StreamReadTimes {
  const left = () => reader.bytes.length - reader.position
  check(left() >= fixedSize, 'wrong_size')
  const kind = streamReadTimeKinds[reader.int(1)] ?? refuse('bad_value')
  const first_bucket = reader.int(1)
  const count = reader.int(1)
  reader.zeros(1)
  check(count > 0 && first_bucket + count <= buckets, 'bad_value')
  const max_us = reader.int(4)
  const sum_us = reader.hex(8)
  check(left() >= 4 * count, 'wrong_size')
  const counts = Array.from({ length: count }, () => reader.int(4))
  check(counts[0] !== 0 && counts.at(-1) !== 0, 'bad_value')
  return { kind, first_bucket, max_us, sum_us, counts }
}

export function emitReadTimes(all: StreamReadTimes[]): Buffer[] {
  return all.map(({ kind, first_bucket, max_us, sum_us, counts }) => {
    const bytes = Buffer.alloc(fixedSize + 4 * counts.length)
    bytes.writeUInt8(streamReadTimeKinds.indexOf(kind), 0)
    bytes.writeUInt8(first_bucket, 1)
    bytes.writeUInt8(counts.length, 2)
    bytes.writeUInt32BE(max_us, 4)
    bytes.write(sum_us, 8, 'hex')
    for (const [index, count] of counts.entries()) bytes.writeUInt32BE(count, fixedSize + 4 * index)
    return bytes
  })
}
