/** A position in untrusted bytes. Reading beyond their end returns nothing: undefined, or fewer bytes. */
export class Cursor {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  get size(): number {
    return this.bytes.byteLength
  }

  u8(at: number): number | undefined {
    return this.bytes[at]
  }

  u16(at: number): number | undefined {
    const [high, low] = [this.bytes[at], this.bytes[at + 1]]
    return high === undefined || low === undefined ? undefined : high * 256 + low
  }

  u32(at: number): number | undefined {
    const [high, low] = [this.u16(at), this.u16(at + 2)]
    return high === undefined || low === undefined ? undefined : high * 65536 + low
  }

  ipv4(at: number): string | undefined {
    return at + 4 <= this.size ? this.bytes.subarray(at, at + 4).join('.') : undefined
  }

  mac(at: number): string | undefined {
    if (at + 6 > this.size) return undefined
    return [...this.bytes.subarray(at, at + 6)].map((byte) => byte.toString(16).padStart(2, '0')).join(':')
  }

  from(at: number, size = Number.POSITIVE_INFINITY): Cursor {
    return new Cursor(this.bytes.subarray(at, at + Math.max(0, size)))
  }

  /** Up to the first zero byte; printable ASCII, everything else as `?`. */
  text(at: number, sizeMax: number): string {
    const field = this.bytes.subarray(at, at + sizeMax)
    const end = field.indexOf(0)
    return printable(end < 0 ? field : field.subarray(0, end))
  }
}

const textLengthMax = 96

/** Printable ASCII, everything else as `?`, cut where it is long. */
export function printable(bytes: Uint8Array): string {
  const cut = bytes.subarray(0, textLengthMax)
  const text = Array.from(cut, (byte) => (byte >= 0x20 && byte <= 0x7e ? String.fromCharCode(byte) : '?'))
  return bytes.byteLength > textLengthMax ? `${text.join('')}...` : text.join('')
}
