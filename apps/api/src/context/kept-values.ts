interface Kept<Value> {
  value: Value
  readAt: number
}

/**
 * Keeps what takes long to read for a few seconds in this process. Only for figures that may be a little old, and whose
 * key names everything that decides who may see them.
 */
export class KeptValues<Value> {
  readonly #kept = new Map<string, Kept<Value>>()
  readonly #keptMs: number
  readonly #countMax: number

  constructor({ keptMs, countMax }: { keptMs: number; countMax: number }) {
    this.#keptMs = keptMs
    this.#countMax = countMax
  }

  async get(key: string, now: Date, read: () => Promise<Value>): Promise<Value> {
    const known = this.#kept.get(key)
    const age = known ? now.getTime() - known.readAt : Number.POSITIVE_INFINITY
    // A clock that was put back makes nothing younger.
    if (known && age >= 0 && age < this.#keptMs) return known.value
    const value = await read()
    // The one that was read last is the last one.
    this.#kept.delete(key)
    this.#kept.set(key, { value, readAt: now.getTime() })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > this.#countMax && oldest !== undefined) this.#kept.delete(oldest)
    return value
  }
}
