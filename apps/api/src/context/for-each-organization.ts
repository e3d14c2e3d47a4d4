import { type Db, inOrganization, type TenantDb } from '@bootfarm/db'
import type { PlatformContext } from './service-context.ts'

/** One organization's error does not stop the work of others: it is thrown when all are done. */
export class OrganizationsFailed extends Error {
  readonly failedCount: number

  constructor(failures: { organizationId: string; error: unknown }[], count: number) {
    const [first] = failures
    const told = failures.slice(0, idsToldMax).map(({ organizationId }) => organizationId)
    super(`for ${failures.length} of ${count} organizations (${told.join(', ')}): ${String(first?.error)}`, {
      cause: first?.error,
    })
    this.name = 'OrganizationsFailed'
    this.failedCount = failures.length
  }
}

const idsToldMax = 5

/**
 * Does a job's work for one organization after the other, each by itself. Throws `OrganizationsFailed` in the end where
 * some failed.
 * @param organizationIds all of them where it is left out
 */
export async function forEachOrganization(
  { db }: Pick<PlatformContext, 'db'>,
  work: (organizationId: string) => Promise<unknown>,
  organizationIds?: string[],
): Promise<void> {
  const ids = organizationIds ?? (await listOrganizationIds(db))
  const failures: { organizationId: string; error: unknown }[] = []
  for (const organizationId of ids)
    try {
      await work(organizationId)
    } catch (error) {
      failures.push({ organizationId, error })
    }
  if (failures.length > 0) throw new OrganizationsFailed(failures, ids.length)
}

/** Like `forEachOrganization`, each in a separate transaction. */
export function inEachOrganization(
  context: Pick<PlatformContext, 'db'>,
  work: (db: TenantDb, organizationId: string) => Promise<unknown>,
  organizationIds?: string[],
): Promise<void> {
  return forEachOrganization(
    context,
    (organizationId) => inOrganization(context.db, organizationId, (db) => work(db, organizationId)),
    organizationIds,
  )
}

/** For jobs that work on one organization after the other. */
async function listOrganizationIds(db: Db): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organization_ids() as id`
  return rows.map(({ id }) => id)
}
