const golden = 0x9e37_79b9
const numbers = 2 ** 32

/** Seeded: the same question has the same answer. A counter whose bits are mixed (as MurmurHash3 ends). */
export class Draws {
  #counter: number

  constructor(seed: number) {
    this.#counter = Math.imul(seed + 1, golden)
  }

  /** One of the values, of which there is at least one. */
  oneOf<T>(values: readonly T[]): T {
    const value = values[Math.floor(this.#next() * values.length)]
    if (value === undefined) throw new Error('nothing to draw from')
    return value
  }

  /** As many as there are, each of them any number of times: a bootstrap sample. */
  resample<T>(values: readonly T[]): T[] {
    return values.map(() => this.oneOf(values))
  }

  /** Standard normal (Box and Muller). */
  normal(): number {
    const [a, b] = [1 - this.#next(), this.#next()]
    return Math.sqrt(-2 * Math.log(a)) * Math.cos(2 * Math.PI * b)
  }

  /** From 0 to below 1. */
  #next(): number {
    this.#counter = (this.#counter + golden) | 0
    let bits = Math.imul(this.#counter ^ (this.#counter >>> 16), 0x85eb_ca6b)
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2_ae35)
    return ((bits ^ (bits >>> 16)) >>> 0) / numbers
  }
}
