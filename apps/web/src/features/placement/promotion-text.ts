import { countOf } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type Promotion = NonNullable<RouterOutputs['version']['promotion']['promotion']>
export type LackingEdge = Promotion['lacking'][number]
type Step = Pick<Promotion, 'number' | 'step'>

export function promotionTitle({ givenUp, ...promotion }: Step & Pick<Promotion, 'givenUp'>): string {
  return `${stepText(promotion)}: ${givenUp ? 'given up' : 'waiting for edges'}`
}

export function stepText({ number, step }: Step): string {
  return step === 'revert' ? `Rollback to version ${number}` : `Promotion of version ${number}`
}

/** How far it is, and what ends the wait. */
export function progressText({
  heldCount,
  lackingCount,
  number,
}: Pick<Promotion, 'heldCount' | 'lackingCount' | 'number'>): string {
  const all = heldCount + lackingCount
  const holds = heldCount === 1 ? 'holds' : 'hold'
  return `${heldCount} of ${countOf(all, 'edge')} ${holds} version ${number}. Production devices get it at their next boot after ${all === 1 ? 'the edge does' : `all ${all} do`}.`
}

/** What happens to devices where a step does not wait. */
export const bootsWithoutCopies =
  'Devices boot it only from edges that hold it. At a site without a copy they cannot boot until an edge there has one.'
