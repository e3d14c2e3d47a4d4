import { setImmediate as othersTurn } from 'node:timers/promises'

/** Runs work that pauses every few milliseconds; requests of others are answered in its pauses. */
export async function runInTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
    await othersTurn()
  }
}
