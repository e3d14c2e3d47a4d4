import { AppError } from '../errors/app-error.ts'

const retryAfterSeconds = 2

/** A limit of how much is in progress at once under one key. */
export interface PlaceLimit {
  key: string
  max: number
}

/** Fastify's, as far as it is needed here. */
interface Answer {
  header(name: string, value: string): unknown
  raw: { once(event: 'close', listener: () => void): unknown }
}

/** Counts the requests in progress in this process, so that none of their senders takes the places of the others. */
export class Places {
  readonly #taken = new Map<string, number>()

  /**
   * Holds a place under each key until the answer is sent or the connection ends. Edges keep what they wanted to send
   * and back off. Throws `unavailable` with `retry-after`, and holds none, if one of the limits is reached.
   */
  hold(reply: Answer, limits: PlaceLimit[]): void {
    const full = limits.find(({ key, max }) => (this.#taken.get(key) ?? 0) >= max)
    if (full) {
      reply.header('retry-after', String(retryAfterSeconds))
      throw new AppError('unavailable', {
        internal: `${full.max} at once of ${full.key}`,
        public: `${full.max} requests of this kind are in progress. Send it again in ${retryAfterSeconds} s.`,
      })
    }
    for (const { key } of limits) this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1)
    reply.raw.once('close', () => {
      for (const { key } of limits) this.#free(key)
    })
  }

  #free(key: string): void {
    const left = (this.#taken.get(key) ?? 0) - 1
    if (left > 0) this.#taken.set(key, left)
    else this.#taken.delete(key)
  }
}
