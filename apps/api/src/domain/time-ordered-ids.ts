import { randomBytes } from 'node:crypto'

const counterMax = 0xff_ffff

/**
 * UUIDs of version 7 (RFC 9562) of one instant, ascending: 48 bits of it in ms, 24 bits of a counter (12 in `rand_a`, 12 in
 * `rand_b`), 48 random bits.
 */
export function timeOrderedIds(at: Date, count: number): string[] {
  if (count > counterMax) throw new RangeError(`at most ${counterMax} ids at once`)
  const ms = at.getTime().toString(16).padStart(12, '0')
  const random = randomBytes(6 * count).toString('hex')
  return Array.from({ length: count }, (_, index) => {
    const counter = index.toString(16).padStart(6, '0')
    const tail = random.slice(12 * index, 12 * (index + 1))
    return `${ms.slice(0, 8)}-${ms.slice(8)}-7${counter.slice(0, 3)}-8${counter.slice(3)}-${tail}`
  })
}
