import { type Cursor, printable } from './cursor.ts'

const optionsMax = 16

/**
 * A TFTP packet in words (RFC 1350, section 5; options RFC 2347); null for what is none.
 * @param sizeBytes on the wire, which may be more than was recorded
 */
export function readTftp(payload: Cursor, sizeBytes: number): string | null {
  switch (payload.u16(0)) {
    case 1:
    case 2:
      return requestWords(payload)
    case 3:
      return `TFTP DATA block ${payload.u16(2) ?? '?'}, ${Math.max(0, sizeBytes - 4)} B`
    case 4:
      return `TFTP ACK of block ${payload.u16(2) ?? '?'}`
    case 5:
      return `TFTP ERROR ${payload.u16(2) ?? '?'}: ${payload.text(4, 128)}`
    case 6:
      return `TFTP OACK ${pairs(strings(payload, 2))}`
    default:
      return null
  }
}

function requestWords(payload: Cursor): string {
  const [file = '', mode = '', ...options] = strings(payload, 2)
  const asked = options.length > 0 ? `, ${pairs(options)}` : ''
  return `TFTP ${payload.u16(0) === 1 ? 'RRQ' : 'WRQ'} ${file} (${mode})${asked}`
}

function strings(payload: Cursor, from: number): string[] {
  const found: string[] = []
  for (let at = from; at < payload.size && found.length < 2 + 2 * optionsMax; ) {
    const end = payload.bytes.indexOf(0, at)
    const stop = end < 0 ? payload.size : end
    found.push(printable(payload.bytes.subarray(at, stop)))
    at = stop + 1
  }
  return found
}

function pairs(texts: string[]): string {
  const named = []
  for (let index = 0; index + 1 < texts.length; index += 2) named.push(`${texts[index]} ${texts[index + 1]}`)
  return named.join(', ')
}
