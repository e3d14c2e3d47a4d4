import type pg from 'pg'

/**
 * The definitions of each kind of object in the schema (for NOT NULL, the columns': PostgreSQL invented the names);
 * without days' partitions, which depend on when reports arrived.
 */
const questions = {
  columns: `select format('%s.%s %s %s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull, attgenerated,
      pg_get_expr(adbin, adrelid)) as line
    from pg_attribute join pg_class on pg_class.oid = attrelid left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relkind in ('r', 'p', 'v') and attnum > 0 and not attisdropped and ours(pg_class)`,
  tables: `select format('%s %s %s %s %s', relname, relkind, relrowsecurity, relforcerowsecurity,
      (select array_agg(acl::text order by acl::text) from unnest(relacl) as acl)) as line
    from pg_class where relkind in ('r', 'p', 'v', 'S') and ours(pg_class)`,
  indexes: `select pg_get_indexdef(indexrelid) as line from pg_index join pg_class on pg_class.oid = indrelid where ours(pg_class)`,
  constraints: `select format('%s %s %s %s', relname, conname, pg_get_constraintdef(pg_constraint.oid), convalidated) as line
    from pg_constraint join pg_class on pg_class.oid = conrelid where contype <> 'n' and ours(pg_class)`,
  policies: `select format('%s %s %s %s %s %s', relname, polname, polcmd, polpermissive, pg_get_expr(polqual, polrelid),
      pg_get_expr(polwithcheck, polrelid)) as line
    from pg_policy join pg_class on pg_class.oid = polrelid where ours(pg_class)`,
  triggers: `select pg_get_triggerdef(pg_trigger.oid) as line
    from pg_trigger join pg_class on pg_class.oid = tgrelid where not tgisinternal and ours(pg_class)`,
  functions: `select pg_get_functiondef(oid) || coalesce((select array_agg(acl::text order by acl::text) from unnest(proacl) as acl)::text, '') as line
    from pg_proc where pronamespace = 'public'::regnamespace and prokind = 'f'`,
  enums: `select format('%s %s', enumtypid::regtype, array_agg(enumlabel order by enumsortorder)) as line from pg_enum group by enumtypid`,
}
const ours = `relnamespace = 'public'::regnamespace and not relispartition and relname <> '_prisma_migrations'`

/** Everything that migrations make in `public`, as sorted lines by kind. */
export async function schemaOf(client: pg.Client): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const [kind, question] of Object.entries(questions)) {
    const { rows } = await client.query<{ line: string }>(question.replaceAll('ours(pg_class)', ours))
    found[kind] = rows.map(({ line }) => line).sort()
  }
  return found
}
