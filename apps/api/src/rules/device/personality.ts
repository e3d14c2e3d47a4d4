import { z } from 'zod'

/** Name and value pairs of a site, a collection or a device, for what the device runs. */

const personalityPairsMax = 50
const nameSizeMax = 64
const valueSizeMax = 1_024

export const personalityName = z
  .string()
  .trim()
  .regex(
    new RegExp(`^[A-Za-z_][A-Za-z0-9_.-]{0,${nameSizeMax - 1}}$`),
    `A name begins with a letter or underscore, continues with letters, digits, hyphens, dots and underscores, and has at most ${nameSizeMax} characters.`,
  )

/** One line of text: it must survive an environment file. */
export const personalityValue = z
  .string()
  .max(valueSizeMax, `A value can have at most ${valueSizeMax} characters.`)
  .refine((text) => !/\p{C}/u.test(text), 'A value is one line without control characters.')

export const personality = z
  .record(personalityName, personalityValue)
  .refine(
    (pairs) => Object.keys(pairs).length <= personalityPairsMax,
    `Enter at most ${personalityPairsMax} attributes.`,
  )
export type Personality = z.infer<typeof personality>

const personalityOrigins = ['site', 'collection', 'device'] as const
export const inheritedPersonality = z.array(
  z.object({ name: z.string(), value: z.string(), origin: z.enum(personalityOrigins) }),
)
type InheritedPersonality = z.infer<typeof inheritedPersonality>

/** Returns the values of a device, by name: its own pairs precede its collection's, and those precede its site's. */
export function inheritPersonality(of: Record<(typeof personalityOrigins)[number], Personality>): InheritedPersonality {
  const pairs = personalityOrigins.flatMap((origin) =>
    Object.entries(of[origin]).map(([name, value]) => [name, { name, value, origin }] as const),
  )
  return [...new Map(pairs).values()].sort((left, right) => (left.name < right.name ? -1 : 1))
}

/** Reads a value that `personality` validated before it was stored: PostgreSQL returns JSON. */
export function personalityOf(column: unknown): Personality {
  return (column ?? {}) as Personality
}
