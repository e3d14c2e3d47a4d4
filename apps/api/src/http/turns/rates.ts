interface Bucket {
  left: number
  filledAtMs: number
}

interface RateOptions {
  /** What a name may do at once, after a pause. */
  burstMax: number
  perSecond: number
  /** A monotonic clock. */
  nowMs?: () => number
}

/**
 * Limits how often something happens under one name, in this process: a token bucket each. API keys have their own
 * limits, which hold across processes.
 */
export class Rates {
  readonly #buckets = new Map<string, Bucket>()
  readonly #burstMax: number
  readonly #perSecond: number
  readonly #nowMs: () => number

  constructor({ burstMax, perSecond, nowMs = () => performance.now() }: RateOptions) {
    this.#burstMax = burstMax
    this.#perSecond = perSecond
    this.#nowMs = nowMs
  }

  /** Counts so many and returns whether they begin within the limit; what is beyond it is taken from the next ones. */
  take(name: string, count = 1): boolean {
    const now = this.#nowMs()
    const bucket = this.#buckets.get(name) ?? { left: this.#burstMax, filledAtMs: now }
    const left = this.#leftOf(bucket, now)
    const isWithin = left >= 1
    // The least recently seen one is first.
    this.#buckets.delete(name)
    this.#buckets.set(name, { left: isWithin ? left - count : left, filledAtMs: now })
    this.#forgetFull(now)
    return isWithin
  }

  #leftOf({ left, filledAtMs }: Bucket, now: number): number {
    return Math.min(this.#burstMax, left + ((now - filledAtMs) / 1_000) * this.#perSecond)
  }

  /** A bucket that is full again is like none. Looks at two at each call, so that none stays for long. */
  #forgetFull(now: number): void {
    let looked = 0
    for (const [name, bucket] of this.#buckets) {
      if (this.#leftOf(bucket, now) >= this.#burstMax) this.#buckets.delete(name)
      looked += 1
      if (looked === 2) return
    }
  }
}
