import { z } from 'zod'

// It would compile schemas of objects, for which it tries `Function` first: the pages' policy forbids that, and
// browsers report each try.
z.config({ jitless: true })

/** Reads a value that this browser keeps; null where it keeps none, or another form of it. */
export function readStored<T>(key: string, schema: z.ZodType<T>): T | null {
  try {
    const text = window.localStorage.getItem(key)
    return text === null ? null : (schema.safeParse(JSON.parse(text)).data ?? null)
  } catch {
    // A browser may refuse to keep anything, and then says so by throwing.
    return null
  }
}

/** Keeps a value in this browser, if it keeps any. */
export function writeStored(key: string, value: unknown): void {
  try {
    window.localStorage.setItem(key, JSON.stringify(value))
  } catch {
    // Full or refused: nothing depends on it.
  }
}

/** Forgets all values whose keys begin so. */
export function forgetStored(prefix: string): void {
  try {
    for (const key of Object.keys(window.localStorage)) if (key.startsWith(prefix)) window.localStorage.removeItem(key)
  } catch {
    // Refused: then nothing is kept.
  }
}
