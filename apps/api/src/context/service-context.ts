import type { Db, DbTransaction, TenantDb } from '@bootfarm/db'
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
  /** Of the caller. */
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
