/** Numbers by what they are due at, the earliest first: a binary heap of fixed capacity, without objects. */
export class DueHeap {
  size = 0
  readonly #at: Float64Array
  readonly #ids: Int32Array

  /** @param capacity the most that are kept at a time */
  constructor(capacity: number) {
    this.#at = new Float64Array(capacity + 1)
    this.#ids = new Int32Array(capacity + 1)
  }

  /** Infinity where nothing is due. */
  get nextAt(): number {
    return this.size > 0 ? (this.#at[1] ?? 0) : Number.POSITIVE_INFINITY
  }

  push(id: number, at: number): void {
    this.size += 1
    let place = this.size
    while (place > 1) {
      const parent = place >> 1
      const parentAt = this.#at[parent] ?? 0
      if (parentAt <= at) break
      this.#put(place, this.#ids[parent] ?? 0, parentAt)
      place = parent
    }
    this.#put(place, id, at)
  }

  /** Only if there is one. */
  pop(): number {
    const first = this.#ids[1] ?? 0
    const [id, at] = [this.#ids[this.size] ?? 0, this.#at[this.size] ?? 0]
    this.size -= 1
    let place = 1
    for (;;) {
      let child = 2 * place
      if (child > this.size) break
      if (child < this.size && (this.#at[child + 1] ?? 0) < (this.#at[child] ?? 0)) child += 1
      const childAt = this.#at[child] ?? 0
      if (childAt >= at) break
      this.#put(place, this.#ids[child] ?? 0, childAt)
      place = child
    }
    if (this.size > 0) this.#put(place, id, at)
    return first
  }

  #put(place: number, id: number, at: number): void {
    this.#ids[place] = id
    this.#at[place] = at
  }
}
