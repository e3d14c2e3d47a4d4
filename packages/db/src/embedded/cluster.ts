import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type Account, isReachableByAll } from './account.ts'
import type { Binaries } from './binaries.ts'

const outsideRoot = '/var/lib/bootfarm'
const secretSizeBytes = 24

export interface Cluster {
  /** PGDATA, without symlinks. */
  directory: string
  /** The superuser's password. */
  secret: string
  /** The password of the API's role. */
  apiSecret: string
}

/** The database cluster at `directory`, made at the first start. Its secrets stand beside it, for their owner alone. */
export function openCluster(directory: string, binaries: Binaries, account: Account | null): Cluster {
  mkdirSync(path.dirname(directory), { recursive: true })
  const secretFile = `${directory}.secret`
  if (!existsSync(path.join(directory, 'PG_VERSION'))) {
    if (existsSync(directory) && !lstatSync(directory).isSymbolicLink())
      throw new Error(`${directory} exists and is not a PostgreSQL directory; choose another.`)
    const secret = randomBytes(secretSizeBytes).toString('base64url')
    rmSync(directory, { force: true })
    createCluster(placeFor(directory, account), { binaries, account, secret })
    // The secret comes last but for the cluster's name: a start that was killed between leaves nothing half-made.
    writeFileSync(secretFile, secret, { mode: 0o600 })
    renameSync(partialOf(directory), directory)
  }
  if (!existsSync(secretFile))
    throw new Error(`${secretFile} is missing; without it nobody can sign in to the database.`)
  const version = readFileSync(path.join(directory, 'PG_VERSION'), 'utf8').trim()
  if (version !== binaries.major)
    throw new Error(
      `${directory} was made by PostgreSQL ${version}, and this is ${binaries.major}; move it with pg_dump.`,
    )
  return {
    directory: realpathSync(directory),
    secret: readFileSync(secretFile, 'utf8'),
    apiSecret: ensureApiSecret(directory),
  }
}

/** Made at the first start that knows of it; `migrate` gives it to the role, and again should the file get lost. */
function ensureApiSecret(directory: string): string {
  const file = `${directory}.api-secret`
  if (!existsSync(file)) {
    writeFileSync(`${file}.partial`, randomBytes(secretSizeBytes).toString('base64url'), { mode: 0o600 })
    renameSync(`${file}.partial`, file)
  }
  return readFileSync(file, 'utf8')
}

/** Where the new cluster is built: under a name that no start mistakes for a finished one. */
function placeFor(directory: string, account: Account | null): string {
  const partial = partialOf(directory)
  // Remains of a start that was killed, also behind the link.
  if (existsSync(partial)) rmSync(realpathSync(partial), { recursive: true, force: true })
  rmSync(partial, { force: true })
  if (!account || isReachableByAll(directory)) return partial
  // The server's account cannot go through root's private folders: the cluster lives outside, behind a link.
  mkdirSync(outsideRoot, { recursive: true, mode: 0o755 })
  const outside = mkdtempSync(path.join(outsideRoot, 'postgres-'))
  symlinkSync(outside, partial)
  return outside
}

const partialOf = (directory: string) => `${directory}.partial`

interface CreateOptions {
  binaries: Binaries
  account: Account | null
  secret: string
}

function createCluster(place: string, { binaries, account, secret }: CreateOptions): void {
  mkdirSync(place, { recursive: true, mode: 0o700 })
  if (account) chownSync(place, account.uid, account.gid)
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-initdb-'))
  const passwordFile = path.join(scratch, 'password')
  writeFileSync(passwordFile, secret, { mode: 0o600 })
  if (account) for (const file of [scratch, passwordFile]) chownSync(file, account.uid, account.gid)
  try {
    execFileSync(
      binaries.initdb,
      [
        '-D',
        place,
        '-U',
        'postgres',
        '-A',
        'scram-sha-256',
        `--pwfile=${passwordFile}`,
        '--encoding=UTF8',
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--data-checksums',
      ],
      { ...(account ?? {}), cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] },
    )
  } catch (error) {
    const reason = (error as { stderr?: Buffer }).stderr?.toString().trim() || String(error)
    throw new Error(`PostgreSQL's initdb failed: ${reason}`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
