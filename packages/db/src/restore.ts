import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { type BackupHeader, readBackup } from './backup.ts'
import { hasEarlier, isApplied, wholeSchema } from './earlier-migrations.ts'
import { migrate, migrationsFolder, readMigrations } from './migrate.ts'
import { restoreSigningKeys } from './restore-signing-keys.ts'

const rowsPerInsert = 500

interface RestoreOptions {
  ownerUrl: string
  /** With the API's role; created if it is missing. */
  apiUrl: string
  file: string
  /** A file of signing keys, or another backup, that is newer than `file`. */
  keysFile?: string | null
}

/**
 * Fills an empty database from a backup: makes the tables as they were, loads the rows, brings everything up to date,
 * and begins a new incarnation of each organization's desired states, so that edges take them although they have seen
 * later ones. The file is read to its end before anything is written. Throws where the database has organizations.
 * @returns how many rows were loaded from `file`
 */
export async function restore({ ownerUrl, apiUrl, file, keysFile = null }: RestoreOptions): Promise<number> {
  let header: BackupHeader | undefined
  for await (const line of readBackup(file)) if (line.kind === 'header') header = line.header
  if (!header) throw new Error(`${file} is empty.`)
  if (header.holds !== 'everything')
    throw new Error(`${file} holds signing keys alone: give it as --keys beside --from with a backup.`)
  await makeTables({ ownerUrl, apiUrl, header })
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  let rows: number
  try {
    await requireEmpty(client)
    await client.query('begin')
    // Tables refer to each other in cycles: foreign keys are checked when all rows are there.
    const checkLater = await deferForeignKeys(client)
    rows = await load(client, file)
    if (keysFile) await restoreSigningKeys(client, keysFile)
    await beginIncarnation(client)
    await checkLater()
    await client.query('commit')
    await client.query('analyze')
  } finally {
    await client.end()
  }
  await migrate(ownerUrl, { apiUrl })
  return rows
}

/** By the migrations of the backup, which this release must contain. */
async function makeTables({
  ownerUrl,
  apiUrl,
  header,
}: {
  ownerUrl: string
  apiUrl: string
  header: BackupHeader
}): Promise<void> {
  const known = new Map(readMigrations(migrationsFolder).map(({ name, checksum }) => [name, checksum]))
  const recorded = hasEarlier(header.migrations)
    ? [
        { name: wholeSchema, checksum: known.get(wholeSchema) ?? '' },
        ...header.migrations.filter(({ name }) => name > wholeSchema),
      ]
    : header.migrations
  const missing = recorded.filter((one) => !isApplied(one, known.get(one.name)))
  if (missing.length > 0)
    throw new Error(
      `This backup was made by a release that has the migration ${missing[0]?.name}, which this one does not: restore with that release, or a later one.`,
    )
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-restore-'))
  try {
    for (const { name } of recorded)
      cpSync(path.join(migrationsFolder, name), path.join(folder, name), { recursive: true })
    if (existsSync(folder)) await migrate(ownerUrl, { apiUrl, folder })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function requireEmpty(client: pg.Client): Promise<void> {
  const { rowCount } = await client.query('select from organization limit 1')
  if (rowCount)
    throw new Error('This database has organizations already: restore into an empty one, then point the API at it.')
}

async function load(client: pg.Client, file: string): Promise<number> {
  let insert = ''
  let waiting: string[] = []
  let count = 0
  const flush = async () => {
    if (waiting.length === 0) return
    await client.query(insert, [`[${waiting.join(',')}]`])
    count += waiting.length
    waiting = []
  }
  for await (const line of readBackup(file)) {
    if (line.kind === 'header') await makePartitions(client, line.header)
    else if (line.kind === 'table') {
      await flush()
      insert = await insertInto(client, line.table)
    } else {
      waiting.push(line.text)
      if (waiting.length === rowsPerInsert) await flush()
    }
  }
  await flush()
  return count
}

/** Names all columns that are not computed; sequences continue after the highest number. */
async function insertInto(client: pg.Client, table: string): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
    where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [`public.${pg.escapeIdentifier(table)}`],
  )
  const [name, columns] = [pg.escapeIdentifier(table), rows.map((column) => column.name).join(', ')]
  return `insert into ${name} (${columns}) overriding system value
    select ${columns} from jsonb_populate_recordset(null::${name}, $1)`
}

/** @returns looks at them all, and makes them as they were */
async function deferForeignKeys(client: pg.Client): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ change: string }>(
    `select format('alter table %s alter constraint %I', conrelid::regclass, conname) as change from pg_constraint
    where contype = 'f' and connamespace = 'public'::regnamespace and conparentid = 0 and not condeferrable`,
  )
  for (const { change } of rows) await client.query(`${change} deferrable initially deferred`)
  return async () => {
    await client.query('set constraints all immediate')
    for (const { change } of rows) await client.query(`${change} not deferrable`)
    await continueSequences(client)
  }
}

async function continueSequences(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ sequence: string; highest: string }>(
    `select pg_get_serial_sequence(attrelid::regclass::text, attname) as sequence,
      format('select max(%I) from %s', attname, attrelid::regclass) as highest
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and attnum > 0
      and pg_get_serial_sequence(attrelid::regclass::text, attname) is not null`,
  )
  for (const { sequence, highest } of rows)
    await client.query(`select setval('${sequence}', (${highest})) where (${highest}) is not null`)
}

async function makePartitions(client: pg.Client, { partitions }: BackupHeader): Promise<void> {
  for (const [parent, days] of Object.entries(partitions))
    for (const day of days) await client.query('select make_boot_partition($1, $2::date)', [parent, day])
}

/** Higher than any start of an earlier restore of the same backup: one each ten seconds. */
async function beginIncarnation(client: pg.Client): Promise<void> {
  await client.query(
    `update organization set state_incarnation = greatest(state_incarnation + 1, (extract(epoch from now()) / 10)::integer)`,
  )
}
