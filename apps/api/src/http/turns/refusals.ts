import { setTimeout as delay } from 'node:timers/promises'
import { Rates } from './rates.ts'

/** Whoever tries again at once after a refusal tries so often. */
const heldMs = 5_000
/** At once. Beyond them connections are ended. */
const heldMax = 2_000
const answeredAtOnce = { burstMax: 60, perSecond: 10 }

export const retryAfterSeconds = heldMs / 1_000

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
   */
  async hold(account: string, left: AbortSignal): Promise<boolean> {
    if (this.#rates.take(account)) return true
    if (this.#heldCount >= heldMax) return false
    this.#heldCount += 1
    await this.#wait(heldMs, left).catch(() => undefined)
    this.#heldCount -= 1
    return true
  }
}
