import type { Db } from '@bootfarm/db'

const lengthMin = 8

/** Returns every table whose rows name their organization. A day's partition is read through its table. */
async function tenantTables(db: Db): Promise<string[]> {
  const rows = await db.$queryRaw<{ name: string }[]>`
    select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attname = 'organization_id' and not a.attisdropped order by 1`
  return rows.map(({ name }) => name)
}

/** All rows of an organization as the owner sees them, by table: the same before and after where nobody changed one. */
export async function rowsOf(db: Db, organizationId: string): Promise<Record<string, unknown[]>> {
  const tables: Record<string, unknown[]> = {}
  for (const name of await tenantTables(db)) {
    const sql = `select to_jsonb(t) as row from "${name}" t where organization_id = $1::uuid order by t::text`
    const rows = await db.$queryRawUnsafe<{ row: unknown }[]>(sql, organizationId)
    tables[name] = rows.map(({ row }) => row)
  }
  return tables
}

/**
 * Every id, name, key and hash of a tenant that is nobody else's: none of them may be in an answer to somebody else.
 */
export async function secretsOf(db: Db, organizationId: string, others: string[]): Promise<string[]> {
  const known = new Set<string>()
  for (const other of others) for (const text of textsIn(await rowsOf(db, other))) known.add(text)
  // Keys of searches are parts of names, which are looked for themselves: a part may be what the other has written.
  const { search_key: _keys, ...tables } = await rowsOf(db, organizationId)
  const own = textsIn(tables)
  return [...new Set(own)].filter((text) => !known.has(text) && isTelling(text))
}

/** An instant identifies nobody. */
function isTelling(text: string): boolean {
  return text.length >= lengthMin && !/^\d{4}-\d\d-\d\d/.test(text)
}

/** Returns ids of an organization's objects in one place, found by their place columns. */
export function idsWithin(
  tables: Awaited<ReturnType<typeof rowsOf>>,
  isWithin: (row: Record<string, unknown>, table: string) => boolean,
): string[] {
  const ids: string[] = []
  for (const [table, rows] of Object.entries(tables))
    for (const row of rows as Record<string, unknown>[])
      if (typeof row.id === 'string' && isWithin(row, table)) ids.push(row.id)
  return ids
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}
