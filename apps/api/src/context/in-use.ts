import { AppError } from '../errors/app-error.ts'

export interface Users {
  noun: string
  count: number
  /** The first of them, by name. */
  names: string[]
}

const namesToldMax = 3

/** "3 collections (Lab, Hall, Office)": who uses something, as the end of a sentence. Null where nobody does. */
export function usersText({ noun, count, names }: Users): string | null {
  if (count === 0) return null
  const shown = names.slice(0, namesToldMax).join(', ')
  if (count === 1) return `the ${noun} ${shown}`
  return `${count} ${noun}s (${shown}${count > namesToldMax ? ', …' : ''})`
}

/** Throws `conflict` where anybody uses it: who, how many, and what to do first. */
export function requireUnused(users: Users[], { verb, instead }: { verb: string; instead: string }): void {
  const texts = users.map(usersText).filter((text) => text !== null)
  if (texts.length > 0)
    throw new AppError('conflict', { public: `It is ${verb} by ${texts.join(' and ')}. To continue, ${instead}` })
}

export function nameTaken(noun: string, name: string, of: string): AppError {
  return new AppError('conflict', { public: `${of} already has a ${noun} named ${name}.` })
}
