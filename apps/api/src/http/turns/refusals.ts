import { setTimeout as delay } from 'node:timers/promises'
import { Rates } from './rates.ts'

/** Whoever tries again at once after a refusal tries so often. */
const heldMs = { min: 5_000, max: 30_000 }
/** Of one account: the more refusals it collects at the same time, the longer each one waits. */
const answeredPerSecond = 4
/** At once. Beyond them connections are ended. */
const heldMax = 2_000
/** A page whose session has ended is refused some twenty times. */
const answeredAtOnce = { burstMax: 60, perSecond: 2 }

export const retryAfterSeconds = heldMs.min / 1_000

interface RefusalOptions {
  rates?: Rates
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/**
 * Holds refusals back from those who collect them. A refusal costs about as much as an answer, and whoever wants to do
 * harm asks again at once; a connection that waits costs nothing.
 */
export class Refusals {
  readonly #rates: Rates
  readonly #wait: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** By account. */
  readonly #held = new Map<string, number>()
  #heldCount = 0

  constructor({
    rates = new Rates(answeredAtOnce),
    wait = (ms, signal) => delay(ms, undefined, { signal }),
  }: RefusalOptions = {}) {
    this.#rates = rates
    this.#wait = wait
  }

  /**
   * Resolves when the account may hear of its refusal: at once if it was refused seldom. Returns false if too many are
   * held already, and the connection is to be ended. `left` ends the wait.
   * @param count a batch of procedures is as many refusals
   */
  async hold(account: string, left: AbortSignal, count = 1): Promise<boolean> {
    if (this.#rates.take(account, count)) return true
    if (this.#heldCount >= heldMax) return false
    const held = this.#countHeld(account, 1)
    const turnMs = (held / answeredPerSecond) * 1_000
    await this.#wait(Math.min(Math.max(turnMs, heldMs.min), heldMs.max), left).catch(() => undefined)
    this.#countHeld(account, -1)
    return true
  }

  #countHeld(account: string, change: 1 | -1): number {
    this.#heldCount += change
    const held = (this.#held.get(account) ?? 0) + change
    if (held === 0) this.#held.delete(account)
    else this.#held.set(account, held)
    return held
  }
}
