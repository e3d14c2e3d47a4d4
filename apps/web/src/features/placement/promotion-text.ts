import type { RouterOutputs } from '../../lib/trpc'

export type Promotion = NonNullable<RouterOutputs['version']['promotion']['promotion']>
export type LackingEdge = Promotion['lacking'][number]

export function promotionTitle({ number, step, givenUp }: Pick<Promotion, 'number' | 'step' | 'givenUp'>): string {
  const what = step === 'revert' ? `Roll back to version ${number}` : `Promotion of version ${number}`
  return givenUp ? `${what}: given up` : `${what}: waiting for edges`
}
