import { randomNumbers } from '../../rules/random-numbers.ts'

const steps = 2 ** 30

/** Seeded: the same question has the same answer. */
export class Draws {
  readonly #below: (below: number) => number

  constructor(seed: number) {
    this.#below = randomNumbers((Math.imul(seed + 1, 0x9e37_79b1) ^ 0x5bd1_e995) | 1)
  }

  /** One of the values, of which there is at least one. */
  oneOf<T>(values: readonly T[]): T {
    const value = values[this.#below(values.length)]
    if (value === undefined) throw new Error('nothing to draw from')
    return value
  }

  /** As many as there are, each of them any number of times: a bootstrap sample. */
  resample<T>(values: readonly T[]): T[] {
    return values.map(() => this.oneOf(values))
  }

  /** Standard normal (Box and Muller). */
  normal(): number {
    const [a, b] = [(this.#below(steps) + 1) / steps, this.#below(steps) / steps]
    return Math.sqrt(-2 * Math.log(a)) * Math.cos(2 * Math.PI * b)
  }
}
