import type { StreamRefusal } from './packet.ts'

export const headerSize = 16

/** A packet that must be ignored, with the reason under which it is counted. */
export class StreamPacketError extends Error {
  readonly reason: StreamRefusal
  constructor(reason: StreamRefusal) {
    super(`stream packet refused: ${reason}`)
    this.reason = reason
  }
}

export function refuse(reason: StreamRefusal): never {
  throw new StreamPacketError(reason)
}

export function check(holds: boolean, reason: StreamRefusal): void {
  if (!holds) refuse(reason)
}

export const isPrintable = (text: string) => /^[\x20-\x7e]*$/.test(text)
export const isZero = (bytes: Uint8Array) => bytes.every((byte) => byte === 0)

/** Reads fields in order; the caller has checked the size. */
export class Reader {
  position = headerSize
  readonly bytes: Buffer
  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes)
  }
  hex(size: number): string {
    return this.take(size).toString('hex')
  }
  int(size: 1 | 2 | 4): number {
    return this.take(size).readUIntBE(0, size)
  }
  named<T extends string>(names: readonly T[], size: 1 | 2, first: number): T {
    return names[this.int(size) - first] ?? refuse('bad_value')
  }
  zeros(size: number): void {
    check(isZero(this.take(size)), 'reserved_not_zero')
  }
  take(size: number): Buffer {
    this.position += size
    return this.bytes.subarray(this.position - size, this.position)
  }
}
