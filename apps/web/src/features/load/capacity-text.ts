import { countOf } from '../../lib/format-quantity.ts'
import { formatInstant } from '../../lib/format-time.ts'
import type { RouterOutputs } from '../../lib/trpc'

export type Capacity = RouterOutputs['load']['capacity']
type Basis = NonNullable<Capacity['basis']>

const percent = (share: number) => `${Math.round(share * 100)}\u00a0%`

/** The estimate in a sentence, and what it is based on. */
export function capacityText(capacity: Capacity, now: Date): { estimate: string; basis: string } {
  const { devices, isAtLeast, unknownBecause, basis } = capacity
  if (devices === null || !basis)
    return {
      estimate: 'How many more devices it carries is not known: not enough data.',
      basis:
        unknownBecause === 'few_devices'
          ? 'Its highest use in the last 14 days was with fewer than 5 devices.'
          : 'It has not reported its load with devices in the last 14 days.',
    }
  return {
    estimate: estimateOf(devices, isAtLeast),
    basis: `${basisText(basis, now)} Disks and memory are not part of this estimate.`,
  }
}

function estimateOf(devices: number, isAtLeast: boolean): string {
  if (isAtLeast) return `Carries at least ${countOf(devices, 'more device')}.`
  return devices === 0 ? 'Carries no more devices.' : `Carries about ${countOf(devices, 'more device')}.`
}

function basisText({ processor, link, limitShare }: Basis, now: Date): string {
  const of = ({ share, devices, at }: { share: number; devices: number; at: string }, what: string) =>
    `${percent(share)} ${what} with ${countOf(devices, 'device')}, ${formatInstant(new Date(at), now)}`
  const measured = [
    ...(processor ? [of(processor, 'of its processors')] : []),
    ...(link ? [of(link, `of its link of ${linkSpeed(link.linkMbps)}`)] : []),
  ]
  return `In proportion to the highest use of the last 14 days (${measured.join('; ')}), up to ${percent(limitShare)}.`
}

function linkSpeed(mbps: number): string {
  return mbps >= 1000 ? `${mbps / 1000}\u00a0Gbit/s` : `${mbps}\u00a0Mbit/s`
}
