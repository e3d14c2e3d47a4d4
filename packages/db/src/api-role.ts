import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Db } from './client.ts'

/** The group of the API's login role; it has the rights, created by the migration `tenancy`. */
export const apiGroup = 'bootfarm_api'
/** GRANT ... WITH SET FALSE. */
const serverVersionMin = 160_000
export const howToSet =
  'DATABASE_OWNER_URL is for `migrate` and signs in as the owner of the tables; DATABASE_URL is for the API and signs in as another role, which `migrate` creates: docs/guides/operations.md.'

interface RoleFacts {
  rolname: string
  rolcanlogin: boolean
  is_mighty: boolean
  is_owner: boolean
  is_member: boolean
}

// A role that may become the owner is as good as the owner.
const readRole = `
  select rolname, rolcanlogin, rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication as is_mighty,
    exists (select from pg_class where relnamespace = 'public'::regnamespace and (relowner = pg_roles.oid
      or not rolsuper and pg_has_role(pg_roles.oid, relowner, 'member'))) as is_owner,
    exists (select from pg_auth_members where member = pg_roles.oid and roleid = to_regrole('${apiGroup}')
      and inherit_option and not set_option and not admin_option) as is_member
  from pg_roles where rolname = $1`

/**
 * Creates the group before the first migration, if this role may. Throws a sentence with the administrator's next step.
 */
export async function ensureApiGroup(owner: pg.Client): Promise<void> {
  const { rows } = await owner.query<{ version: number; is_there: boolean; may_create: boolean }>(
    `select current_setting('server_version_num')::int as version, to_regrole('${apiGroup}') is not null as is_there,
      rolsuper or rolcreaterole as may_create from pg_roles where rolname = current_user`,
  )
  const [facts] = rows
  if (!facts) throw new Error('The database does not know who signed in.')
  if (facts.version < serverVersionMin)
    throw new Error(`This PostgreSQL has the version ${facts.version / 10_000}; Bootfarm needs 16 or a later one.`)
  if (facts.is_there || facts.may_create) return
  throw notAllowed(`create role ${apiGroup} nologin`)
}

/**
 * Creates the login role that `apiUrl` names, or sets the password of `apiUrl`, adds it to the group, and lets nobody
 * else into the database. Throws if it is the owner, or has more rights than the API's role may have.
 */
export async function ensureApiRole(owner: pg.Client, ownerUrl: string, apiUrl: string): Promise<void> {
  const role = decodeURIComponent(new URL(apiUrl).username)
  const password = decodeURIComponent(new URL(apiUrl).password)
  if (!role) throw new Error(`DATABASE_URL names no role. ${howToSet}`)
  const known = await factsOf(owner, role)
  if (known) requireHarmless(known)
  const quoted = pg.escapeIdentifier(role)
  const verifier = pg.escapeLiteral(scramVerifier(password))
  const canSignIn = known?.rolcanlogin && (await signsIn(ownerUrl, role, password))
  const settings = 'login nosuperuser nocreatedb nocreaterole nobypassrls'
  if (!known) await run(owner, `create role ${quoted} ${settings} password`, verifier)
  else if (!canSignIn) await run(owner, `alter role ${quoted} login password`, verifier)
  if (!known?.is_member) await run(owner, `grant ${apiGroup} to ${quoted} with inherit true, set false, admin false`)
  await closeDatabase(owner, role)
  if (!canSignIn && !(await signsIn(ownerUrl, role, password)))
    throw new Error(`The API's role ${role} cannot sign in to the database: pg_hba.conf or its password forbid it.`)
}

/** Roles belong to the server: an owner may lack the right, or another installation on the server made the group. */
async function run(owner: pg.Client, statement: string, secret = ''): Promise<void> {
  try {
    await owner.query(`${statement} ${secret}`)
  } catch (error) {
    throw isRefusal(error) ? notAllowed(secret ? `${statement} '…'` : statement) : error
  }
}

function notAllowed(statement: string): Error {
  return new Error(
    `The role of DATABASE_OWNER_URL may not do this; have an administrator of the server run it once: ${statement}`,
  )
}

/** Rights that belong to the database itself, and so are not copied with it. */
export async function closeDatabase(owner: pg.Client, role: string): Promise<void> {
  const { rows } = await owner.query<{ name: string }>('select current_database() as name')
  const database = pg.escapeIdentifier(rows[0]?.name ?? '')
  await owner.query(`revoke connect, temporary on database ${database} from public`)
  await owner.query(`grant connect on database ${database} to ${pg.escapeIdentifier(role)}`)
}

/** Throws unless `db` signs in as a role that row-level security binds. */
export async function requireApiRole(db: Db): Promise<void> {
  const [role] = await db.$queryRaw<{ name: string }[]>`select current_user::text as name`
  const [facts] = await db.$queryRawUnsafe<RoleFacts[]>(readRole, role?.name)
  if (facts) requireHarmless(facts)
}

function requireHarmless({ rolname, is_mighty, is_owner }: RoleFacts): void {
  if (is_owner) throw new Error(`DATABASE_URL signs in as ${rolname}, which owns the tables. ${howToSet}`)
  if (is_mighty)
    throw new Error(
      `DATABASE_URL signs in as ${rolname}, which may more than the API should (superuser, bypassrls, createrole, createdb or replication). ${howToSet}`,
    )
}

async function factsOf(owner: pg.Client, role: string): Promise<RoleFacts | undefined> {
  return (await owner.query<RoleFacts>(readRole, [role])).rows[0]
}

async function signsIn(ownerUrl: string, role: string, password: string): Promise<boolean> {
  const url = new URL(ownerUrl)
  url.username = encodeURIComponent(role)
  url.password = encodeURIComponent(password)
  const client = new pg.Client({ connectionString: url.toString() })
  try {
    await client.connect()
    return true
  } catch (error) {
    // Class 28: invalid authorization. No right to connect, either, which is granted in a moment.
    if (/^28/.test((error as { code?: string }).code ?? '') || isRefusal(error)) return false
    throw error
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** SQLSTATE 42501: insufficient_privilege. */
function isRefusal(error: unknown): boolean {
  return (error as { code?: string }).code === '42501'
}

/** RFC 5803: the server keeps this and never sees the password, nor does its log. */
function scramVerifier(password: string): string {
  const iterations = 4096
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, iterations, 32, 'sha256')
  const clientKey = createHmac('sha256', salted).update('Client Key').digest()
  const storedKey = createHash('sha256').update(clientKey).digest('base64')
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}
