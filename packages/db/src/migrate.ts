import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { ensureApiGroup, ensureApiRole } from './api-role.ts'
import { hasEarlier, isApplied, wholeSchema } from './earlier-migrations.ts'
import { installJobQueues } from './job-queue.ts'

/**
 * Applies prisma/migrations at start-up and keeps Prisma's own table, row by row as `prisma migrate deploy` does, so
 * that production needs no CLI and the CLI agrees afterwards.
 */

/** The advisory lock that Prisma's engine takes. */
const advisoryLock = 72_707_369
const connectLimitMs = 15_000
const connectRetryMs = 100
/** SQLSTATE 3D000: invalid_catalog_name. */
const databaseAbsent = '3D000'
/** SQLSTATE 57P03: cannot_connect_now. */
const notYetReady = new Set(['ECONNREFUSED', 'ECONNRESET', '57P03'])
/** SQLSTATE 55P03 lock_not_available, 40P01 deadlock_detected: nothing is wrong with the migration. */
const lockMissed = new Set(['55P03', '40P01'])
/**
 * A migration that waits for a table stands before everybody who comes later: so it waits this long only, gives back
 * what it holds, lets them pass and tries again. Below PostgreSQL's deadlock_timeout (1 s), so that in a deadlock it
 * gives way before another is cut off.
 */
const lockTimeoutMs = 500
const politeAttempts = 4
/**
 * If somebody always holds one table while waiting for another, giving way would last for ever. Beyond the
 * deadlock_timeout PostgreSQL decides: it cancels the one that waited first, whose transaction is rolled back and whose
 * caller retries.
 */
const insistingLockTimeoutMs = 3_000
const lockRetryMs = 500
const lockLimitMs = 300_000
export const migrationsFolder = fileURLToPath(new URL('../prisma/migrations/', import.meta.url))
const createTable = `create table if not exists _prisma_migrations (
  id varchar(36) primary key not null, checksum varchar(64) not null, finished_at timestamptz,
  migration_name varchar(255) not null, logs text, rolled_back_at timestamptz,
  started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`

interface Migration {
  name: string
  sql: string
  checksum: string
}

interface MigrateOptions {
  /** With the API's role and password; created if it is missing. */
  apiUrl?: string
  folder?: string
  /** How long it tries to get tables that others use. */
  lockLimitMs?: number
  /** Hears, once for each migration, that it has to wait, and for whom. */
  onBlocked?: (text: string) => void
}

/**
 * Applies the missing migrations, and creates the database if it does not exist.
 * @param ownerUrl of the role that owns, or will own, the tables
 * @returns names of the migrations applied now. Throws if one failed earlier, was edited after it was applied, or does
 * not get tables that others hold: the next start continues; and for a database of a build from before the first
 * release that is not up to date.
 */
export async function migrate(ownerUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const { apiUrl, folder = migrationsFolder } = options
  const client = await connect(ownerUrl)
  try {
    // Two programs starting at once: the second waits here and then finds nothing to do.
    await lockMigrations(client)
    await ensureApiGroup(client)
    await client.query(createTable)
    const migrations = readMigrations(folder)
    const applied = await carryOver(client, migrations, await readApplied(client))
    const pending = migrations.filter((migration) => isPending(migration, applied))
    for (const migration of pending)
      if (isOutside(migration)) await buildIndexes(client, migration)
      else await applyWhenFree(client, migration, options)
    await installJobQueues(client)
    if (apiUrl) await ensureApiRole(client, ownerUrl, apiUrl)
    return pending.map(({ name }) => name)
  } finally {
    await client.end()
  }
}

/**
 * Asks again and again: a statement that waits is a transaction with a snapshot, and an index that is built beside
 * writers waits for all of those.
 */
async function lockMigrations(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [advisoryLock])
    if (rows[0]?.taken) return
    await delay(lockRetryMs)
  }
}

/** Waits for a server that is just starting, then reports that there is none. */
async function connect(url: string): Promise<pg.Client> {
  const deadline = performance.now() + connectLimitMs
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    // A caller that waits for an answer learns of a lost connection; without this Node would end the program.
    client.on('error', () => undefined)
    try {
      await client.connect()
      return client
    } catch (error) {
      const { code = '' } = error as { code?: string }
      if (code === databaseAbsent) await createDatabase(url)
      else if (!notYetReady.has(code)) throw error
      else if (performance.now() > deadline)
        throw new Error(`The database at ${new URL(url).host} does not answer (${code}).`, { cause: error })
      else await delay(connectRetryMs)
    }
  }
}

async function createDatabase(url: string): Promise<void> {
  const neighbour = new URL(url)
  const name = decodeURIComponent(neighbour.pathname.slice(1))
  neighbour.pathname = '/postgres'
  const client = new pg.Client({ connectionString: neighbour.toString() })
  await client.connect()
  try {
    await client.query(`create database ${pg.escapeIdentifier(name)}`)
  } catch (error) {
    // 42P04, 23505: another program made it meanwhile.
    if (!['42P04', '23505'].includes((error as { code?: string }).code ?? '')) throw error
  } finally {
    await client.end()
  }
}

/** Returns the checksums of applied migrations by name. */
async function readApplied(client: pg.Client): Promise<Map<string, string>> {
  const { rows } = await client.query<{ migration_name: string; checksum: string; finished_at: Date | null }>(
    'select migration_name, checksum, finished_at from _prisma_migrations where rolled_back_at is null',
  )
  const failed = rows.find((row) => !row.finished_at)
  if (failed)
    throw new Error(
      `Migration ${failed.migration_name} failed earlier; repair the database, then run \`prisma migrate resolve\`.`,
    )
  return new Map(rows.map((row) => [row.migration_name, row.checksum]))
}

/**
 * Records the whole schema as applied where earlier migrations have made it. Their rows stay: a build that runs beside
 * looks for them.
 */
async function carryOver(
  client: pg.Client,
  migrations: Migration[],
  applied: Map<string, string>,
): Promise<Map<string, string>> {
  const whole = migrations.find(({ name }) => name === wholeSchema)
  const recorded = [...applied].map(([name, checksum]) => ({ name, checksum }))
  if (!whole || !hasEarlier(recorded)) return applied
  await client.query(
    `insert into _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count) values ($1, $2, $3, now(), 1)`,
    [randomUUID(), whole.checksum, whole.name],
  )
  return new Map(applied).set(whole.name, whole.checksum)
}

/** The migrations that a database needs for the programs of this build. */
export function migrationNames(): string[] {
  return readMigrations(migrationsFolder).map(({ name }) => name)
}

export function readMigrations(folder: string): Migration[] {
  return readdirSync(folder)
    .sort()
    .map((name) => ({ name, file: path.join(folder, name, 'migration.sql') }))
    .filter(({ file }) => existsSync(file))
    .map(({ name, file }) => {
      const sql = readFileSync(file, 'utf8')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    })
}

function isPending({ name, checksum }: Migration, applied: Map<string, string>): boolean {
  const known = applied.get(name)
  if (known !== undefined && !isApplied({ name, checksum: known }, checksum))
    throw new Error(`Migration ${name} was edited after it was applied; write a new one instead.`)
  return known === undefined
}

/** Retries until nobody else holds the tables that it needs. */
async function applyWhenFree(
  client: pg.Client,
  migration: Migration,
  { lockLimitMs: limitMs = lockLimitMs, onBlocked }: MigrateOptions,
): Promise<void> {
  const deadline = performance.now() + limitMs
  for (let attempt = 1; !(await apply(client, migration, lockTimeoutOf(attempt))); attempt += 1) {
    const isLate = performance.now() > deadline
    if (attempt > 1 && !isLate) {
      await delay(lockRetryMs)
      continue
    }
    const what = `Migration ${migration.name} needs tables that others are using. ${await longestTransaction(client)}`
    if (isLate)
      throw new Error(
        `${what} It was tried for ${Math.round(limitMs / 1000)} s and changed nothing; end that, then start again.`,
      )
    onBlocked?.(`${what} It is tried again until they are free.`)
    await delay(lockRetryMs)
  }
}

/** The first line of a migration that builds or drops indexes without blocking writers. */
const outsideMark = '-- outside of a transaction'
const isOutside = ({ sql }: Migration) => sql.startsWith(`${outsideMark}\n`)
const indexStatement =
  /^(?:create\s+(?:unique\s+)?index\s+concurrently|drop\s+index\s+concurrently\s+if\s+exists)\s+(\w+)\b/i

/**
 * Runs the statements of a migration one by one, each outside of a transaction, as CONCURRENTLY demands. A kill between
 * them leaves a part: the next start builds what is missing, and again what was left invalid. Throws if an index is not
 * valid afterwards.
 */
async function buildIndexes(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  const statements = sql
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter(Boolean)
  try {
    for (const statement of statements) await buildIndex(client, statement)
  } catch (error) {
    throw new Error(`Migration ${name} failed, and is tried again at the next start: ${String(error)}`, {
      cause: error,
    })
  }
  await client.query(
    `insert into _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
     values ($1, $2, $3, now(), 1)`,
    [randomUUID(), checksum, name],
  )
}

async function buildIndex(client: pg.Client, statement: string): Promise<void> {
  const [, index] = indexStatement.exec(statement) ?? []
  if (!index)
    throw new Error(
      `outside of a transaction there is only CREATE INDEX CONCURRENTLY and DROP INDEX CONCURRENTLY IF EXISTS, each with a name: ${statement}`,
    )
  const isCreated = /^create/i.test(statement)
  const before = isCreated ? await isValidIndex(client, index) : null
  if (before === true) return
  if (before === false) await client.query(`drop index concurrently ${index}`)
  await client.query(statement)
  if (isCreated && (await isValidIndex(client, index)) !== true) throw new Error(`the index ${index} is not valid`)
}

/** Null where there is no such index. */
async function isValidIndex(client: pg.Client, index: string): Promise<boolean | null> {
  const { rows } = await client.query<{ is_valid: boolean }>(
    'select indisvalid as is_valid from pg_index where indexrelid = to_regclass($1)',
    [index.toLowerCase()],
  )
  return rows[0]?.is_valid ?? null
}

const lockTimeoutOf = (attempt: number) => (attempt > politeAttempts ? insistingLockTimeoutMs : lockTimeoutMs)

/** A sentence about who has worked on this database for longest. */
async function longestTransaction(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ pid: number; name: string; seconds: number }>(
    `select pid, coalesce(nullif(application_name, ''), usename::text) as name,
      floor(extract(epoch from clock_timestamp() - xact_start))::int as seconds
    from pg_stat_activity where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
    order by xact_start limit 1`,
  )
  const [oldest] = rows
  if (!oldest) return 'Nobody has a transaction open now.'
  return `The longest transaction is that of process ${oldest.pid} (${oldest.name}), ${oldest.seconds} s.`
}

/**
 * One simple query: PostgreSQL runs the file and its row in `_prisma_migrations` as one transaction, so that a kill
 * leaves nothing of it behind. Only a migration that fails is recorded separately.
 * @returns false if others hold tables that it needs, and nothing was done
 */
async function apply(client: pg.Client, { name, sql, checksum }: Migration, lockWaitMs: number): Promise<boolean> {
  const row = [randomUUID(), checksum, name].map((text) => pg.escapeLiteral(text)).join(', ')
  try {
    await client.query(`set local lock_timeout = ${lockWaitMs};
      insert into _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
      values (${row}, now(), 1);
      ${sql}`)
    return true
  } catch (error) {
    if (lockMissed.has((error as { code?: string }).code ?? '')) return false
    const logs = pg.escapeLiteral(String(error))
    await client
      .query(`insert into _prisma_migrations (id, checksum, migration_name, logs) values (${row}, ${logs})`)
      // The server is away, and everything that was started is lost.
      .catch(() => undefined)
    throw new Error(`Migration ${name} failed: ${String(error)}`, { cause: error })
  }
}
