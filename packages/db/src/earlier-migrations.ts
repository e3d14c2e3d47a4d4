import { createHash } from 'node:crypto'

/** The migration that creates the whole schema of the first release, instead of the 38 that preceded it. */
export const wholeSchema = '20261123040000_init'
const earlierCount = 38
/** SHA-256 of their names and checksums, a line each. */
const earlierDigest = 'cc18e86e79d6ade43c3d3c59f05728ca0e82b80e916ca2cc036358bd316b5296'

/** SHA-256 of `wholeSchema` as it was first written: the same schema in more words. */
const firstWritten = '329bfca35c62ba821abb8a746bb1a998ce769a2c9443e06e7f7332abf773dc9d'

interface Recorded {
  name: string
  checksum: string
}

/**
 * Returns whether a database, or a backup of one, has the schema of `wholeSchema` by the earlier migrations. Throws if
 * it has only some of them, or others: its schema is unknown then.
 */
export function hasEarlier(recorded: readonly Recorded[]): boolean {
  if (recorded.some(({ name }) => name === wholeSchema)) return false
  const earlier = recorded.filter(({ name }) => name < wholeSchema)
  if (earlier.length === 0) return false
  const lines = earlier.map(({ name, checksum }) => `${name} ${checksum}\n`).sort()
  if (createHash('sha256').update(lines.join('')).digest('hex') === earlierDigest) return true
  throw new Error(
    `This database was made by a build from before the first release and has ${earlier.length} migrations of those ` +
      `builds, where all ${earlierCount} of them as they were last are needed. Start the last such build on it once, ` +
      'then this one; or begin with an empty database.',
  )
}

/** Returns whether a database that recorded this has applied the content of the file with the checksum. */
export function isApplied({ name, checksum }: Recorded, now: string | undefined): boolean {
  return checksum === now || (name === wholeSchema && checksum === firstWritten)
}
