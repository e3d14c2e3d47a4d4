const operations = new Set(['select', 'insert', 'update', 'delete', 'with', 'begin', 'commit', 'rollback'])
/** The table of the statement: Prisma's quoted names with their schema, and our own without. */
const tableOf = /\b(?:from|into|update)\s+(?:only\s+)?(?:"?\w+"?\.)?"?([a-z_]\w*)"?/i

/**
 * Names a statement by its kind and first table: names of this build, never a value. Statements that are none of
 * Prisma's kinds are `other`.
 */
export function statementName(text: string): { operation: string; table: string | null } {
  const [word = ''] = /^[a-z]+/i.exec(text.trimStart()) ?? []
  const lower = word.toLowerCase()
  if (!operations.has(lower)) return { operation: 'other', table: null }
  if (lower === 'begin' || lower === 'commit' || lower === 'rollback') return { operation: lower, table: null }
  const [, table = null] = tableOf.exec(text) ?? []
  return { operation: lower, table }
}
