import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, renameSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import pg from 'pg'
import { z } from 'zod'

/**
 * A backup is one gzip file of JSON lines: a header, then for each table its name and its rows, then the number of rows
 * and the SHA-256 of all lines before. It shows one moment of the database: a snapshot, read while others keep writing.
 * It contains secrets of the control plane (signing keys, hashes of passwords and keys): mode 0600, to be kept like a
 * password. Sessions are left out, so people sign in again after a restore.
 */

export const backupVersion = 1
const rowsPerFetch = 500
/** `search_key`: the database makes its rows of those of the objects. */
const leftOut = ['_prisma_migrations', 'session', 'verification', 'search_key']
/** The keys that edges have pinned: small enough to be kept apart after each change of one. */
export const signingKeyTable = 'signing_key'

export const backupHeader = z.object({
  format: z.literal('bootfarm-backup'),
  version: z.literal(backupVersion),
  takenAt: z.iso.datetime(),
  /** A file of keys alone goes with a backup, and is none. */
  holds: z.enum(['everything', 'signing keys']).default('everything'),
  /** By name; a restore creates the tables by these migrations, and then applies the later ones. */
  migrations: z.array(z.object({ name: z.string(), checksum: z.string() })),
  /** YYYYMMDD of the days that have partitions, by their parent. */
  partitions: z.record(z.string(), z.array(z.string())),
})
const tableLine = z.object({ table: z.string() })
const endLine = z.object({ rows: z.number(), sha256: z.string() })
export type BackupHeader = z.infer<typeof backupHeader>

/**
 * @param holds all, or only what signs desired states
 * @returns how many rows it holds. The file appears whole or not at all.
 */
export async function backUp(
  ownerUrl: string,
  file: string,
  holds: BackupHeader['holds'] = 'everything',
): Promise<number> {
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  const partial = `${file}.partial`
  try {
    await client.query('begin isolation level repeatable read read only')
    // Dates and numbers as text in one form for every reader.
    await client.query(`set local time zone 'UTC'; set local datestyle = 'ISO'; set local extra_float_digits = 1`)
    const rows = await writeFile(partial, async (write) => {
      await write({ ...(await readHeader(client)), holds })
      let count = 0
      const tables = holds === 'everything' ? await readTables(client) : [signingKeyTable]
      for (const table of tables) count += await writeTable(client, table, write)
      return count
    })
    await client.query('commit')
    renameSync(partial, file)
    return rows
  } finally {
    rmSync(partial, { force: true })
    await client.end()
  }
}

type Write = (line: object | string) => Promise<void>

async function writeFile(file: string, produce: (write: Write) => Promise<number>): Promise<number> {
  const lines = new PassThrough()
  const digest = createHash('sha256')
  const written = pipeline(lines, createGzip({ level: 6 }), createWriteStream(file, { mode: 0o600, flush: true }))
  // A writer that waits for space learns of a full disk, too.
  const broken = written.then(() => undefined)
  broken.catch(() => undefined)
  const put = async (text: string) => {
    // A reader that is faster than the disk waits, so that memory stays small.
    if (!lines.write(text)) await Promise.race([new Promise((resolve) => lines.once('drain', resolve)), broken])
  }
  try {
    const rows = await produce(async (line) => {
      const text = `${typeof line === 'string' ? line : JSON.stringify(line)}\n`
      digest.update(text)
      await put(text)
    })
    await put(`${JSON.stringify({ rows, sha256: digest.digest('hex') })}\n`)
    lines.end()
    await written
    return rows
  } catch (error) {
    lines.destroy()
    await written.catch(() => undefined)
    throw error
  }
}

async function readHeader(client: pg.Client): Promise<Omit<BackupHeader, 'holds'>> {
  const migrations = await client.query<{ name: string; checksum: string }>(
    `select migration_name as name, checksum from _prisma_migrations where finished_at is not null and rolled_back_at is null
    order by migration_name`,
  )
  const partitions = await client.query<{ parent: string; days: string[] }>(
    `select parent.relname as parent, array_agg(right(child.relname, 8) order by child.relname) as days
    from pg_inherits join pg_class as parent on parent.oid = inhparent join pg_class as child on child.oid = inhrelid
    where parent.relkind = 'p' and parent.relnamespace = 'public'::regnamespace group by 1`,
  )
  return {
    format: 'bootfarm-backup',
    version: backupVersion,
    takenAt: new Date().toISOString(),
    migrations: migrations.rows,
    partitions: Object.fromEntries(partitions.rows.map(({ parent, days }) => [parent, days])),
  }
}

async function readTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
      and not relispartition and not relname::text = any($1) order by relname`,
    [leftOut],
  )
  return rows.map(({ name }) => name)
}

async function writeTable(client: pg.Client, table: string, write: Write): Promise<number> {
  await write({ table })
  const name = pg.escapeIdentifier(table)
  await client.query(`declare rows no scroll cursor for select to_jsonb(${name})::text as row from ${name}`)
  let count = 0
  for (;;) {
    const { rows } = await client.query<{ row: string }>(`fetch ${rowsPerFetch} from rows`)
    if (rows.length > 0) await write(rows.map(({ row }) => row).join('\n'))
    count += rows.length
    if (rows.length < rowsPerFetch) break
  }
  await client.query('close rows')
  return count
}

/** The kinds of a backup's lines, in their order; a reader waits only for the next one. */
export type BackupLine =
  | { kind: 'header'; header: BackupHeader }
  | { kind: 'table'; table: string }
  | { kind: 'row'; text: string }

/**
 * Throws a sentence for a file that is no backup, is cut short or was changed: only after the last line is it known to
 * be whole.
 */
export async function* readBackup(file: string): AsyncGenerator<BackupLine> {
  const input = createReadStream(file)
  const unpacked = input.pipe(createGunzip())
  input.once('error', (error) => unpacked.destroy(error))
  const digest = createHash('sha256')
  let pending: string | undefined
  let rows = 0
  let isFirst = true
  try {
    for await (const line of createInterface({ input: unpacked, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (pending !== undefined) {
        digest.update(`${pending}\n`)
        const read = isFirst ? headerOf(pending) : lineOf(pending)
        isFirst = false
        if (read.kind === 'row') rows += 1
        yield read
      }
      pending = line
    }
    await finished(unpacked, { readable: true, writable: false }).catch(() => undefined)
  } catch (error) {
    if (error instanceof BackupError) throw error
    throw new BackupError(`${file} is no backup, or it is cut short: ${(error as Error).message}`)
  }
  const end = endLine.safeParse(pending === undefined ? null : JSON.parse(pending))
  if (!end.success || end.data.rows !== rows) throw new BackupError(`${file} is cut short: its end is missing.`)
  if (end.data.sha256 !== digest.digest('hex'))
    throw new BackupError(`${file} is damaged: its checksum does not fit what it holds.`)
}

export class BackupError extends Error {}

function headerOf(line: string): BackupLine {
  const header = backupHeader.safeParse(JSON.parse(line))
  if (header.success) return { kind: 'header', header: header.data }
  throw new BackupError('This file is no backup of Bootfarm, or one of a later release.')
}

/** A table's line is the only one with nothing but `table`; no table has such a column alone. */
function lineOf(line: string): BackupLine {
  if (line.startsWith('{"table":')) {
    const parsed = tableLine.strict().safeParse(JSON.parse(line))
    if (parsed.success) return { kind: 'table', table: parsed.data.table }
  }
  return { kind: 'row', text: line }
}
