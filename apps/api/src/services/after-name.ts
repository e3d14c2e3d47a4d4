import { decodeCursor } from '../domain/keyset.ts'

interface NameKeyset {
  OR?: [{ name: { gt: string } }, { name: string; id: { gt: string } }]
}

/** The `where` of lists sorted by (name, id): what comes after the cursor. */
export function afterName(cursor: string | null | undefined): NameKeyset {
  const after = decodeCursor(cursor)
  if (!after) return {}
  const [name, id] = after
  return { OR: [{ name: { gt: name } }, { name, id: { gt: id } }] }
}
