import type { Db, DbTransaction } from './client.ts'
import { beginIn, outOfOrganization, requireNoTransaction } from './organization-client.ts'
import { sharesOf } from './pool-share.ts'

/**
 * Gives access to one organization's rows, within one transaction. A service may request its own transaction: it joins
 * this one, so that everything is kept or nothing.
 */
export type TenantDb = DbTransaction & {
  $transaction<T>(work: (transaction: DbTransaction) => Promise<T>): Promise<T>
}

export interface OrganizationOptions {
  /** How long to wait for a connection of the pool. */
  maxWaitMs?: number
  /** After this time the transaction is rolled back. */
  timeoutMs?: number
}

/**
 * Runs `work` in one transaction that sees and writes only rows of this organization: row-level security holds even if
 * a query lacks the condition. One organization runs a few at a time: the rest of the pool is for the others. It must
 * not wait for anything but the database. Throws inside another one, which would wait for a second connection while it
 * holds the first.
 */
export function inOrganization<T>(
  db: Db,
  organizationId: string,
  work: (db: TenantDb) => Promise<T>,
  { maxWaitMs, timeoutMs }: OrganizationOptions = {},
): Promise<T> {
  requireNoTransaction()
  const limits = {
    ...(maxWaitMs === undefined ? {} : { maxWait: maxWaitMs }),
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  }
  const begin = () =>
    beginIn(organizationId, () =>
      db.$transaction((transaction) => outOfOrganization(() => work(tenantDb(transaction))), limits),
    )
  return sharesOf(db)?.within(organizationId, begin, maxWaitMs) ?? begin()
}

function tenantDb(transaction: DbTransaction): TenantDb {
  const goOn = <T>(work: (transaction: DbTransaction) => Promise<T>) => work(transaction)
  return new Proxy(transaction, {
    get: (target, name) => (name === '$transaction' ? goOn : Reflect.get(target, name, target)),
  }) as TenantDb
}
