import { formatCount } from '../../lib/format-quantity.ts'
import type { BootDetail } from './boot-types'

export type Network = NonNullable<BootDetail['facts']['network']>

/** Null: the network takes what both cards take, as far as anybody knows. */
export function sizeSentence({ isBlackHole, sizeBytes, mtuBytes }: Network): string | null {
  if (!isBlackHole) return null
  const here = mtuBytes === null ? '' : `: MTU ${mtuBytes} here, less on the way`
  return `Packets above ${formatCount(sizeBytes)} bytes vanish between edge and device${here}.`
}

const counters = [
  ['carrierChanges', 'Link changes'],
  ['receiveErrors', 'Receive errors'],
  ['crcErrors', 'Damaged frames'],
  ['receiveDrops', 'Dropped by the card'],
  ['sendErrors', 'Send errors'],
  ['socketDrops', 'Dropped by the device'],
] as const

/** The card's counters that count something. */
export function cardCounters(network: Network): { label: string; count: number }[] {
  return counters.flatMap(([name, label]) => (network[name] > 0 ? [{ label, count: network[name] }] : []))
}
