/** Packets of one boot, and how many of them were lost, or came late. */
export interface Hits {
  of: number
  hits: number
}

export interface Ratio {
  packets: number
  lost: number
  share: number
  low: number
  high: number
}

/** With so many boots or more, the interval is that of the normal distribution; with fewer, wider. */
const normalZ = 1.96
const smallSampleZ = 3.3
/** 95 % of the time there are fewer, if none was seen (rule of three). */
const noneSeen = 3

/**
 * Returns the share of lost packets with an interval that holds it in 95 of 100 cases; null without packets. Packets of
 * one boot are lost together, so the boots are the sample and not their packets: the spread between boots counts, or
 * that of single packets where this is larger.
 */
export function ratioOf(boots: Hits[]): Ratio | null {
  const measured = boots.filter(({ of }) => of > 0)
  const packets = sum(measured.map(({ of }) => of))
  if (packets === 0) return null
  const lost = sum(measured.map(({ hits }) => hits))
  const share = lost / packets
  const count = measured.length
  const ceiling = Math.min(1, noneSeen / packets)
  if (count < 2) return { packets, lost, share, low: 0, high: 1 }
  const between = sum(measured.map(({ of, hits }) => (hits - share * of) ** 2)) * (count / (count - 1))
  const within = share * (1 - share) * packets
  const error = Math.sqrt(Math.max(between, within)) / packets
  const reach = error * (normalZ + smallSampleZ / (count - 1))
  return { packets, lost, share, low: Math.max(0, share - reach), high: Math.min(1, Math.max(share + reach, ceiling)) }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
