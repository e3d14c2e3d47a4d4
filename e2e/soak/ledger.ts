/** The result of a change that was requested from the API. */
export type Answer =
  /** Acknowledged: it must be there afterwards. */
  | 'acknowledged'
  /** Refused: according to the answer, nothing was done. */
  | 'refused'
  /** In doubt: the answering process died, so it may be there or not. */
  | 'unknown'

/**
 * Records what was promised to whom. Each object has one writer, which requests one value after the other, each with
 * the revision that it has read, so a request made before an acknowledged change cannot take effect after it.
 */
export class Ledger {
  acknowledged = 0
  refused = 0
  unknown = 0
  readonly #promised = new Map<string, string | null>()
  readonly #possible = new Map<string, Set<string>>()

  /** @param value the requested value; for an object that is to be created, its first */
  note(id: string, value: string, answer: Answer): void {
    this[answer] += 1
    if (answer === 'refused') return
    if (answer === 'acknowledged') {
      this.#promised.set(id, value)
      this.#possible.delete(id)
      return
    }
    if (!this.#promised.has(id)) this.#promised.set(id, null)
    const possible = this.#possible.get(id) ?? new Set()
    this.#possible.set(id, possible.add(value))
  }

  /**
   * @param found the value of an object, null where it is missing
   * @returns sentences for promises that do not hold
   */
  lost(found: (id: string) => string | null): string[] {
    return [...this.#promised].flatMap(([id, promised]) => {
      const value = found(id)
      if (value === promised || (value !== null && this.#possible.get(id)?.has(value))) return []
      return [`change of ${id}: ${promised ?? 'nothing'} was acknowledged last, ${value ?? 'nothing'} is there`]
    })
  }
}
