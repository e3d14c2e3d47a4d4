import {
  type InSession,
  type StreamFetchTimes,
  type StreamReadTimes,
  streamReadPhases,
  streamReadTimeKinds,
} from './packet.ts'
import { check, headerSize, type Reader, refuse } from './reader.ts'

/** Parses FETCH_TIMES; parses and emits the read times of a REPORT (STREAM.md, "Where time went"). */

const fixedSize = 16
const buckets = 24
const fetchedSize = 8
const fetchedMax = 64

export function parseFetchTimes(reader: Reader, session: InSession): StreamFetchTimes {
  const count = (reader.bytes.length - headerSize) / fetchedSize
  check(Number.isInteger(count) && count > 0 && count <= fetchedMax, 'wrong_size')
  const reads = Array.from({ length: count }, (): [number, number] => [reader.int(4), reader.int(4)])
  return { type: 'fetch_times', ...session, reads }
}

export function parseReadTimes(reader: Reader, count: number): StreamReadTimes[] {
  check(count <= (streamReadPhases.length - 1) * streamReadTimeKinds.length, 'bad_value')
  const all: StreamReadTimes[] = []
  for (let index = 0; index < count; index += 1) {
    const one = parseOne(reader)
    const before = all.at(-1)
    check(!before || mayFollow(before, one), 'bad_value')
    all.push(one)
  }
  return all
}

function mayFollow(before: StreamReadTimes, one: StreamReadTimes): boolean {
  const [phaseBefore, phase] = [phaseOf(before), phaseOf(one)]
  if (phase !== phaseBefore) return phaseBefore > 0 && phase > phaseBefore
  return streamReadTimeKinds.indexOf(one.kind) > streamReadTimeKinds.indexOf(before.kind)
}

const phaseOf = ({ phase = 'whole' }: StreamReadTimes) => streamReadPhases.indexOf(phase)

function parseOne(reader: Reader): StreamReadTimes {
  const left = () => reader.bytes.length - reader.position
  check(left() >= fixedSize, 'wrong_size')
  const kind = streamReadTimeKinds[reader.int(1)] ?? refuse('bad_value')
  const first_bucket = reader.int(1)
  const count = reader.int(1)
  const phase = streamReadPhases[reader.int(1)] ?? refuse('bad_value')
  check(count > 0 && first_bucket + count <= buckets, 'bad_value')
  const max_us = reader.int(4)
  const sum_us = reader.hex(8)
  check(left() >= 4 * count, 'wrong_size')
  const counts = Array.from({ length: count }, () => reader.int(4))
  check(counts[0] !== 0 && counts.at(-1) !== 0, 'bad_value')
  return { ...(phase !== 'whole' && { phase }), kind, first_bucket, max_us, sum_us, counts }
}

export function emitReadTimes(all: StreamReadTimes[]): Buffer[] {
  return all.map((one) => {
    const { kind, first_bucket, max_us, sum_us, counts } = one
    const bytes = Buffer.alloc(fixedSize + 4 * counts.length)
    bytes.writeUInt8(streamReadTimeKinds.indexOf(kind), 0)
    bytes.writeUInt8(first_bucket, 1)
    bytes.writeUInt8(counts.length, 2)
    bytes.writeUInt8(phaseOf(one), 3)
    bytes.writeUInt32BE(max_us, 4)
    bytes.write(sum_us, 8, 'hex')
    for (const [index, count] of counts.entries()) bytes.writeUInt32BE(count, fixedSize + 4 * index)
    return bytes
  })
}
