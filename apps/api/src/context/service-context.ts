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
 * What a use case of one organization works with when nobody is signed in: edges, jobs, the demo. `db` is one
 * transaction.
 */
export interface SystemContext {
  db: TenantDb
  clock: Clock
}

/** What the audit log keeps of a request beside who made it. */
export interface RequestFacts {
  /** Procedure, e.g. `device.update`. */
  action: string
  /** Of the caller. */
  address: string | null
  id: string | null
  /** Where the procedure's object lies. */
  place: Place
  /** Entries that the request has written to the audit log. */
  recordedCount: number
}

/** What a use case of a signed-in person, or of an API key, works with. */
export interface ServiceContext extends SystemContext {
  actor: Actor
  request: RequestFacts
}

/** What a use case works with that needs no organization, or looks for one itself. */
export interface OutsideContext extends PlatformContext {
  request: RequestFacts
}

/** The same for somebody who is signed in. */
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

/** Within `work` the transaction sees what lies in the trash: everywhere else row-level security hides it. */
export async function withTrash<T>(db: DbOrTransaction, work: () => Promise<T>): Promise<T> {
  await db.$executeRaw`select set_config('bootfarm.trash', 'shown', true)`
  // Where it throws, the transaction ends, and the setting with it.
  const result = await work()
  await db.$executeRaw`select set_config('bootfarm.trash', '', true)`
  return result
}
