import {
  type InSession,
  type StreamControl,
  type StreamWrite,
  type StreamWriteAck,
  streamDiscardSizeMax,
  streamFragmentSizeMin,
  streamOperations,
  streamSectorSize,
  streamWriteCodes,
  streamWriteFragmentsMax,
  streamWriteSizeMax,
} from './packet.ts'
import { check, type Reader } from './reader.ts'

/** Parses and emits WRITE, CONTROL and WRITE_ACK (STREAM.md, "Writes"). */

const writeSizeFixed = 40
const writeFragmentSizeMax = 1440
const writePacketSizeMax = 16 + writeFragmentSizeMax
const missingSizeMax = Math.ceil(streamWriteFragmentsMax / 8)

const isSectors = (offset: string, length: number) =>
  length % streamSectorSize === 0 && BigInt(`0x${offset}`) % BigInt(streamSectorSize) === 0n

export function parseWrite(reader: Reader, session: InSession, index: number): StreamWrite {
  const size = reader.bytes.length
  check(size > writeSizeFixed && size <= writePacketSizeMax, 'wrong_size')
  const version_tag = reader.hex(8)
  const offset = reader.hex(8)
  const length = reader.int(4)
  const fragment_size = reader.int(2)
  const attempt = reader.int(2)
  check(fragment_size >= streamFragmentSizeMin && fragment_size <= writeFragmentSizeMax, 'bad_value')
  check(length > 0 && length <= streamWriteSizeMax && isSectors(offset, length), 'bad_value')
  check(index < streamWriteFragmentsMax, 'bad_value')
  const payload = reader.hex(size - writeSizeFixed)
  return { type: 'write', ...session, version_tag, offset, length, attempt, fragment_size, index, payload }
}

export function parseControl(reader: Reader, session: InSession): StreamControl {
  check(reader.bytes.length === writeSizeFixed, 'wrong_size')
  const version_tag = reader.hex(8)
  const offset = reader.hex(8)
  const length = reader.int(4)
  const operation = reader.named(streamOperations, 1, 1)
  reader.zeros(1)
  const attempt = reader.int(2)
  if (operation === 'flush') check(length === 0 && /^0+$/.test(offset), 'reserved_not_zero')
  else check(length > 0 && length <= streamDiscardSizeMax && isSectors(offset, length), 'bad_value')
  return { type: 'control', ...session, version_tag, operation, offset, length, attempt }
}

export function parseWriteAck(reader: Reader, session: InSession): StreamWriteAck {
  const size = reader.bytes.length
  check(size >= 20 && size <= 20 + missingSizeMax, 'wrong_size')
  const code = reader.named(streamWriteCodes, 2, 0)
  reader.zeros(2)
  const missing = reader.hex(size - 20)
  check((code === 'missing') === missing.length > 0, 'wrong_size')
  check(code !== 'missing' || !/^0+$/.test(missing), 'bad_value')
  return { type: 'write_ack', ...session, code, missing }
}
