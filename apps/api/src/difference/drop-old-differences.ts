import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import { dayMs } from '../rules/utc-day.ts'
import { activeStates } from '../store/public.ts'
import type { Objects } from './objects.ts'

/** A difference that no edge lacked for so long is dropped, also at the edges that keep it. */
const keptMs = 7 * dayMs

/** Removes differences that nobody needs, or whose version is gone, and objects that belong to none any more. */
export async function dropOldDifferences({
  db,
  clock,
  objects,
}: PlatformContext & { objects: Objects }): Promise<void> {
  const store = objects.settings.store
  const stored = new Set(store ? await store.organizationIds() : [])
  await forEachOrganization({ db }, async (organizationId) => {
    // A row exists before its first object.
    const ids = store && stored.delete(organizationId) ? await store.differenceIds(organizationId) : []
    const known = await inOrganization(db, organizationId, (tenant) => dropUnneeded(tenant, organizationId, clock()))
    for (const differenceId of ids) if (!known.has(differenceId)) await store?.delete({ organizationId, differenceId })
  })
  for (const organizationId of stored)
    for (const differenceId of (await store?.differenceIds(organizationId)) ?? [])
      await store?.delete({ organizationId, differenceId })
}

/** Returns the ids of those that stay. */
async function dropUnneeded(db: DbOrTransaction, organizationId: string, now: Date): Promise<Set<string>> {
  const jobs = await db.storeJob.findMany({
    where: { organizationId, state: activeStates, differenceId: { not: null } },
    select: { differenceId: true },
  })
  const taken = jobs.flatMap(({ differenceId }) => differenceId ?? [])
  // A version in the trash is hidden: its differences go at once.
  await db.$executeRaw`
    delete from difference where organization_id = ${organizationId}::uuid and not id = any(${taken}::uuid[])
      and (needed_at < ${new Date(now.getTime() - keptMs)} or not exists (select from vdisk_version as version
        where version.organization_id = difference.organization_id and version.id = difference.version_id))`
  const rows = await db.difference.findMany({ where: { organizationId }, select: { id: true } })
  return new Set(rows.map(({ id }) => id))
}
