/** Lets a few pieces of work under one key run at once, and the others wait in their order. */
export class Turns {
  readonly #max: number
  readonly #running = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(max: number) {
    this.#max = max
  }

  /** @returns what `work` does; null if nobody waits for it any more when its turn comes */
  async within<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T | null> {
    if (signal.aborted) return null
    const running = this.#running.get(key) ?? 0
    if (running < this.#max) this.#running.set(key, running + 1)
    else await this.#turn(key)
    try {
      return signal.aborted ? null : await work()
    } finally {
      this.#pass(key)
    }
  }

  #turn(key: string): Promise<void> {
    const waiting = this.#waiting.get(key) ?? []
    this.#waiting.set(key, waiting)
    return new Promise((resolve) => void waiting.push(resolve))
  }

  /** To whoever waits longest. */
  #pass(key: string): void {
    const waiting = this.#waiting.get(key)
    const next = waiting?.shift()
    if (waiting?.length === 0) this.#waiting.delete(key)
    if (next) {
      next()
      return
    }
    const running = (this.#running.get(key) ?? 0) - 1
    if (running > 0) this.#running.set(key, running)
    else this.#running.delete(key)
  }
}
