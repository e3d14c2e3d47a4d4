import { createHash } from 'node:crypto'

/**
 * The ids of a boot's trace are derived from the boot's, so that a boot reported twice, or exported beside a collector
 * that has it, is the same trace with the same spans. W3C Trace Context forbids ids of zeros only.
 */

/** 128 bits in hexadecimal digits. */
export function bootTraceId(bootId: string): string {
  const id = bootId.replaceAll('-', '')
  return /^0+$/.test(id) ? digestOf(bootId, 32) : id
}

/** 64 bits in hexadecimal digits. @param name of the span within its boot */
export function bootSpanId(bootId: string, name: string): string {
  return digestOf(`${bootId}:${name}`, 16)
}

function digestOf(text: string, digits: number): string {
  const id = createHash('sha256').update(text).digest('hex').slice(0, digits)
  return /^0+$/.test(id) ? id.replace(/0$/, '1') : id
}
