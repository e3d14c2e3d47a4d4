import { type Db, type DbTransaction, Prisma, type TenantDb } from '@bootfarm/db'
import type { Actor } from '../rules/actor.ts'
import type { Clock } from '../rules/clock.ts'
import type { Person } from '../rules/person.ts'
import type { Place } from '../rules/place.ts'

/**
 * Before an organization is known, or for all of them: `inOrganization` leads on from here. Tenants' tables look empty.
 */
export interface PlatformContext {
  db: Db
  clock: Clock
}

/**
 * The context of a use case of one organization without a signed-in person: edges, jobs, the demo. `db` is one
 * transaction.
 */
export interface SystemContext {
  db: TenantDb
  clock: Clock
}

/** The facts of a request that the audit log keeps, apart from who made it. */
export interface RequestFacts {
  /** Procedure, e.g. `device.update`. */
  action: string
  /** The caller's address. */
  address: string | null
  id: string | null
  /** The place of the procedure's object. */
  place: Place
  /** Entries that the request has written to the audit log. */
  recordedCount: number
}

/** The context of a use case of a signed-in person, or of an API key. */
export interface ServiceContext extends SystemContext {
  actor: Actor
  request: RequestFacts
}

/** The context of a use case that needs no organization, or finds one itself. */
export interface OutsideContext extends PlatformContext {
  request: RequestFacts
}

/** The same for a signed-in person. */
export interface PersonContext extends OutsideContext {
  person: Person
}

export type DbOrTransaction = DbTransaction

/** An edge whose signature was found right. */
export interface AuthenticatedEdge {
  organizationId: string
  edgeId: string
  siteId: string
  bootEpoch: number
  counter: number
}

/** The key of a row that belongs to the organization, as Prisma's `where` takes it. */
export function ownRow({ organizationId }: { organizationId: string }, id: string) {
  return { organizationId_id: { organizationId, id } }
}

/** Within `work` the transaction sees the trash: everywhere else row-level security hides it. */
export async function withTrash<T>(db: DbOrTransaction, work: () => Promise<T>): Promise<T> {
  await db.$executeRaw`select set_config('bootfarm.trash', 'shown', true)`
  // If it throws, the transaction ends, and the setting with it.
  const result = await work()
  await db.$executeRaw`select set_config('bootfarm.trash', '', true)`
  return result
}

const tables = {
  device: Prisma.sql`device`,
  disk_capture: Prisma.sql`disk_capture`,
  edge: Prisma.sql`edge`,
  experiment: Prisma.sql`experiment`,
  farm: Prisma.sql`farm`,
  finding: Prisma.sql`finding`,
  invitation: Prisma.sql`invitation`,
  rollout: Prisma.sql`rollout`,
  schedule: Prisma.sql`schedule`,
  site: Prisma.sql`site`,
  store_job: Prisma.sql`store_job`,
  vdisk: Prisma.sql`vdisk`,
  webhook_endpoint: Prisma.sql`webhook_endpoint`,
}
type LockedTable = keyof typeof tables

/** `no key update` lets others write rows that refer to the locked one; `update` does not. */
const strengths = { update: Prisma.sql`for update`, 'no key update': Prisma.sql`for no key update` }
type Strength = keyof typeof strengths

interface Lock {
  organizationId: string
  id: string
  strength: Strength
  /** `id` if left out. */
  columns?: Prisma.Sql
}

/**
 * Locks one row of an organization until the transaction ends; other transactions that lock it wait.
 * @returns the row's columns, or null if there is no such row
 */
export async function lockRow<Row = { id: string }>(
  db: DbOrTransaction,
  table: LockedTable,
  { organizationId, id, strength, columns = Prisma.sql`id` }: Lock,
): Promise<Row | null> {
  const rows = await db.$queryRaw<Row[]>`select ${columns} from ${tables[table]}
    where organization_id = ${organizationId}::uuid and id = ${id}::uuid ${strengths[strength]}`
  return rows[0] ?? null
}

/** Like `lockRow`, for the row of the organization itself. */
export async function lockOrganization(db: DbOrTransaction, id: string, strength: Strength): Promise<void> {
  await db.$queryRaw`select id from organization where id = ${id}::uuid ${strengths[strength]}`
}
