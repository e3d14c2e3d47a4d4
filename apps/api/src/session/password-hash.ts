import { availableParallelism } from 'node:os'
import * as betterAuth from 'better-auth/crypto'
import { AppError } from '../errors/app-error.ts'

/**
 * A hash takes a tenth of a second of a processor, on one of the process's four threads: two of those stay free for
 * everything else, and half of the processors.
 */
export function hashesAtOnce(processors: number): number {
  return Math.min(2, Math.max(1, Math.floor(processors / 2)))
}

const atOnceMax = hashesAtOnce(availableParallelism())
/** Some seconds of work. */
const waitingMax = 100

let running = 0
const waiting: (() => void)[] = []

/** Waits for its turn among passwords. Throws `unavailable` if too many wait. */
export async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= atOnceMax) {
    if (waiting.length >= waitingMax)
      throw new AppError('unavailable', { public: 'Too many people are signing in at once. Try again in a minute.' })
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running += 1
  try {
    return await work()
  } finally {
    // Whoever waits longest takes this turn over.
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }
}

/** Returns the password's hash in better-auth's format. Throws `unavailable`. */
export function hashPassword(password: string): Promise<string> {
  return inTurn(() => betterAuth.hashPassword(password))
}

/** Returns whether the hash is the password's. Throws `unavailable`. */
export function verifyPassword(given: { hash: string; password: string }): Promise<boolean> {
  return inTurn(() => betterAuth.verifyPassword(given))
}
