/** A page with live updates reads a few lists each second, and a person has several open. */
const perSecond = 50
const defaultBurstMax = 1_000

interface Bucket {
  left: number
  filledAtMs: number
}

/**
 * Limits how many procedures a person calls, in this process: a token bucket each. A batch counts as its procedures.
 * API keys have their own limits, which hold across processes.
 */
export class PersonRates {
  readonly #buckets = new Map<string, Bucket>()
  readonly #burstMax: number
  readonly #nowMs: () => number

  /** @param nowMs a monotonic clock */
  constructor({ burstMax = defaultBurstMax, nowMs = () => performance.now() } = {}) {
    this.#burstMax = burstMax
    this.#nowMs = nowMs
  }

  /** Counts one call and returns whether it is within the limit. */
  take(userId: string): boolean {
    const now = this.#nowMs()
    const bucket = this.#buckets.get(userId) ?? { left: this.#burstMax, filledAtMs: now }
    const left = Math.min(this.#burstMax, bucket.left + ((now - bucket.filledAtMs) / 1_000) * perSecond)
    const isWithin = left >= 1
    // The least recently seen person is first.
    this.#buckets.delete(userId)
    this.#buckets.set(userId, { left: isWithin ? left - 1 : left, filledAtMs: now })
    this.#forgetFull(now)
    return isWithin
  }

  /** A bucket that is full again is like none. Looks at two at each call, so that none stays for long. */
  #forgetFull(now: number): void {
    let looked = 0
    for (const [userId, { left, filledAtMs }] of this.#buckets) {
      if (left + ((now - filledAtMs) / 1_000) * perSecond >= this.#burstMax) this.#buckets.delete(userId)
      looked += 1
      if (looked === 2) return
    }
  }
}
