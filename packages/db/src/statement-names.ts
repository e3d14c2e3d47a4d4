import { createHash } from 'node:crypto'

/**
 * Pages of lists, as Prisma writes them: which index finds the first 50 depends on the values of the filter, so that
 * these are planned for each. A plan for any value would not even take an index of what hardly any row has.
 */
const page = /\bORDER BY\b.*\bLIMIT \$\d+/s
/** A text of this many uses is named. A text that is used once is parsed once, either way. */
const sightingsBeforeName = 3
/** Each connection of the pool keeps each named statement, and PostgreSQL its plan. */
const namesMax = 400
/** Texts that are too rare; beyond this number, counting starts again. */
const sightingsMax = 2_000

/**
 * Names for statements that come again and again: PostgreSQL parses a named one once for each connection, puts the
 * conditions of row-level security into it once, and need not plan it each time.
 */
export class StatementNames {
  readonly #names = new Map<string, string>()
  readonly #sightings = new Map<string, number>()

  /** @returns undefined for a text that is to be sent as it is */
  nameOf(text: string): string | undefined {
    const name = this.#names.get(text)
    if (name !== undefined || this.#names.size >= namesMax) return name
    if (page.test(text)) return undefined
    const sightings = (this.#sightings.get(text) ?? 0) + 1
    if (sightings < sightingsBeforeName) {
      if (this.#sightings.size >= sightingsMax) this.#sightings.clear()
      this.#sightings.set(text, sightings)
      return undefined
    }
    this.#sightings.delete(text)
    const given = createHash('sha256').update(text).digest('base64url')
    this.#names.set(text, given)
    return given
  }
}
