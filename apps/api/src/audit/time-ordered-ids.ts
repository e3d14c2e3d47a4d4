import { randomBytes } from 'node:crypto'

const counterMax = 0xff_ffff

/** The instant of the last ids that this process has made, and where their counter stands. */
let lastMs = 0
let nextCounter = 0

/**
 * UUIDs of version 7 (RFC 9562) of one instant, ascending: 48 bits of it in ms, 24 bits of a counter (12 in `rand_a`,
 * 12 in `rand_b`), 48 random bits. Those that this process makes later at the same instant come behind (section 6.2).
 */
export function timeOrderedIds(at: Date, count: number): string[] {
  const atMs = at.getTime()
  if (atMs !== lastMs) nextCounter = 0
  const first = nextCounter
  if (first + count > counterMax) throw new RangeError(`at most ${counterMax} ids of one instant`)
  lastMs = atMs
  nextCounter = first + count
  const ms = atMs.toString(16).padStart(12, '0')
  const random = randomBytes(6 * count).toString('hex')
  return Array.from({ length: count }, (_, index) => {
    const counter = (first + index).toString(16).padStart(6, '0')
    const tail = random.slice(12 * index, 12 * (index + 1))
    return `${ms.slice(0, 8)}-${ms.slice(8)}-7${counter.slice(0, 3)}-8${counter.slice(3)}-${tail}`
  })
}
