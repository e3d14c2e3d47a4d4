/** Values of these fields never reach the audit log. */
const secretNames = /secret|password|token|seed|hash|privatekey|edgekey/i
/** The expiry of a secret is not secret. */
const instantNames = /(?:At|Until)$/
const hidden = '[hidden]'
const textLengthMax = 2_000
const itemsMax = 100

export type Fields = Record<string, unknown>

/** The fields that differ, as they were and as they are; of something new or gone, all of them. Secrets are hidden. */
export function changeOf(before: Fields | null, after: Fields | null): { before: Fields | null; after: Fields | null } {
  if (!before || !after) return { before: before && safe(before), after: after && safe(after) }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => JSON.stringify(plain(before[name])) !== JSON.stringify(plain(after[name])),
  )
  const pick = (of: Fields) => Object.fromEntries(names.map((name) => [name, of[name] ?? null]))
  return { before: safe(pick(before)), after: safe(pick(after)) }
}

function safe(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      secretNames.test(name) && !instantNames.test(name) && value !== null ? hidden : plain(value),
    ]),
  )
}

/** Returns the value as JSON stores it, bounded. */
function plain(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return hidden
  if (typeof value === 'string') return value.length > textLengthMax ? `${value.slice(0, textLengthMax)}…` : value
  if (Array.isArray(value)) {
    const items = value.slice(0, itemsMax).map(plain)
    return value.length > itemsMax ? [...items, `… ${value.length - itemsMax} more`] : items
  }
  if (typeof value === 'object') return safe(value as Fields)
  return value
}
