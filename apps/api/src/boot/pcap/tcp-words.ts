import { type Cursor, printable } from './cursor.ts'

const flag = { fin: 1, syn: 2, rst: 4, ack: 16 } as const
const requestLine = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS) \S+ HTTP\/1\./
const statusLine = /^HTTP\/1\.\d (\d{3} ?.*)$/

interface TcpWords {
  isHttp: boolean
  what: string
}

/**
 * A TCP segment in words (RFC 9293, section 3.1), requests and answers of HTTP/1 by their first line.
 * @param segmentSize of the whole segment on the wire, which may be more than was recorded
 */
export function readTcp(segment: Cursor, segmentSize: number): TcpWords {
  const flags = segment.u8(13) ?? 0
  const headerSize = ((segment.u8(12) ?? 0) >> 4) * 4
  const payload = segment.from(headerSize)
  const payloadSize = Math.max(0, segmentSize - headerSize)
  const line = printable(payload.bytes.subarray(0, lineEnd(payload.bytes)))
  if (requestLine.test(line)) return { isHttp: true, what: `HTTP ${line.replace(/ HTTP\/1\.\d$/, '')}` }
  const status = statusLine.exec(line)
  if (status) return { isHttp: true, what: `HTTP ${status[1]?.trim()}` }
  const ports = `port ${segment.u16(0) ?? '?'} to ${segment.u16(2) ?? '?'}`
  if (flags & flag.rst) return { isHttp: false, what: `TCP reset, ${ports}` }
  if (flags & flag.syn) return { isHttp: false, what: `TCP connect${flags & flag.ack ? ' answered' : ''}, ${ports}` }
  if (flags & flag.fin) return { isHttp: false, what: `TCP close, ${ports}` }
  return {
    isHttp: false,
    what: payloadSize > 0 ? `TCP data, ${payloadSize} B, ${ports}` : `TCP acknowledgement, ${ports}`,
  }
}

/** Of the first line without its end; a header that is no text has no line. */
function lineEnd(bytes: Uint8Array): number {
  const end = bytes.subarray(0, 512).findIndex((byte) => byte === 0x0d || byte === 0x0a)
  return Math.max(end, 0)
}
