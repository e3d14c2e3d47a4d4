import { randomUUID } from 'node:crypto'
import type pg from 'pg'

export interface TenantTable {
  name: string
  /** The column of the organization: `id` in the table of organizations, else `organization_id`. */
  key: string
}

/** From the catalogue: every table of the schema with rows of organizations, except partitions. */
export async function readTenantTables(owner: pg.Client): Promise<TenantTable[]> {
  const { rows } = await owner.query<TenantTable>(`
    select relname as name, case relname when 'organization' then 'id' else 'organization_id' end as key from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and (relname = 'organization' or exists (
      select from pg_attribute where attrelid = pg_class.oid and attname = 'organization_id' and not attisdropped))
    order by relname`)
  return rows
}

interface Column {
  name: string
  type: string
  category: string
  first_label: string | null
}

/**
 * A row in each of the tables for each organization, made up from the columns' types; foreign keys lead nowhere, and
 * checks are dropped.
 */
export async function fillTenantTables(
  owner: pg.Client,
  tables: TenantTable[],
  organizationIds: string[],
): Promise<void> {
  await owner.query('set session_replication_role = replica')
  for (const table of tables) {
    const { rows: checks } = await owner.query<{ name: string }>(
      `select conname as name from pg_constraint where contype = 'c' and conislocal and conrelid = $1::regclass`,
      [`public."${table.name}"`],
    )
    for (const { name } of checks) await owner.query(`alter table "${table.name}" drop constraint "${name}"`)
    const { rows: columns } = await owner.query<Column>(
      `select attname as name, atttypid::regtype::text as type, typcategory as category,
        (select enumlabel from pg_enum where enumtypid = atttypid order by enumsortorder limit 1) as first_label
      from pg_attribute join pg_type on pg_type.oid = atttypid
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attnotnull and attgenerated = ''`,
      [`public."${table.name}"`],
    )
    for (const organizationId of organizationIds) {
      const made = Object.fromEntries(columns.map((column) => [column.name, valueFor(column)]))
      const row = { ...made, [table.key]: organizationId }
      const names = Object.keys(row).map((name) => `"${name}"`)
      await owner.query(
        `insert into "${table.name}" (${names}) select ${names} from jsonb_populate_record(null::"${table.name}", $1)`,
        [JSON.stringify(row)],
      )
    }
  }
  await owner.query('reset session_replication_role')
}

function valueFor({ type, category, first_label }: Column): unknown {
  if (first_label !== null) return first_label
  if (type === 'uuid') return randomUUID()
  if (type === 'bytea') return '\\x00'
  if (type === 'inet' || type === 'cidr') return '192.0.2.1'
  if (type === 'json' || type === 'jsonb') return {}
  const byCategory: Record<string, unknown> = { A: [], B: false, D: '2026-11-20T12:00:00Z', N: 1, T: '1 day' }
  return category in byCategory ? byCategory[category] : randomUUID()
}
