/** Payloads of one statement; further ones wait for the next. */
const payloadsAtOnceMax = 1_000

interface AnnouncerOptions {
  /** Sends the notifications of these payloads; throws if it is not known whether they were sent. */
  send(payloads: string[]): Promise<unknown>
  /** Ends early when the signal aborts. */
  pause(signal: AbortSignal): Promise<unknown>
}

/**
 * Sends notifications after the commits that they tell of, each payload at most once between two pauses. PostgreSQL
 * commits transactions that notify one after the other, over the whole server: those with reports do not, and this is
 * one short transaction for all that came meanwhile. What waits is bounded by the number of different payloads.
 */
export class Announcer {
  readonly #options: AnnouncerOptions
  readonly #waiting = new Set<string>()
  readonly #closing = new AbortController()
  #sending: Promise<void> | null = null

  constructor(options: AnnouncerOptions) {
    this.#options = options
  }

  /** The first one after a pause is sent at once. */
  announce(payloads: string[]): void {
    for (const payload of payloads) this.#waiting.add(payload)
    if (this.#waiting.size > 0) this.#sending ??= this.#sendWaiting()
  }

  /** Resolves when what waits is sent; gives it up if that fails. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#sending
  }

  async #sendWaiting(): Promise<void> {
    const { signal } = this.#closing
    while (this.#waiting.size > 0) {
      const payloads = [...this.#waiting].slice(0, payloadsAtOnceMax)
      for (const payload of payloads) this.#waiting.delete(payload)
      const isSent = await this.#options.send(payloads).then(
        () => true,
        () => false,
      )
      if (!isSent && signal.aborted) break
      // Sent twice is harmless: whoever wakes looks for changes.
      if (!isSent) for (const payload of payloads) this.#waiting.add(payload)
      await this.#options.pause(signal)
    }
    this.#sending = null
  }
}
