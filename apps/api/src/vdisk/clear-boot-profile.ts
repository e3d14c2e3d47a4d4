import { Prisma } from '@bootfarm/db'
import type { ServiceContext } from '../context/service-context.ts'
import { recordChange } from '../events/record-change.ts'
import { activeStates, askStore } from '../store/public.ts'
import { changedVersionNow, changeVersion, conflict } from './open-version.ts'
import type { VersionWithJobs } from './version-schema.ts'

/**
 * Makes each edge that has learned from a version's boots forget that; it learns again from the next boot. Throws
 * `not_found`; `conflict` if no edge has learned any, or all have been asked already.
 */
export function clearBootProfile(
  context: ServiceContext,
  { versionId }: { versionId: string },
): Promise<VersionWithJobs> {
  return changeVersion(context, { versionId }, async ({ version, vdisk, place }) => {
    const { db, actor } = context
    const { organizationId } = actor
    const edges = await db.edgeVersion.findMany({
      where: {
        organizationId,
        versionId,
        bootProfiles: { not: Prisma.DbNull },
        edge: { revokedAt: null, site: { deletionId: null } },
      },
      // In the lock order of every request to several edges, so that no deadlock can occur.
      orderBy: [{ edge: { name: 'asc' } }, { edgeId: 'asc' }],
      select: { edgeId: true },
    })
    if (edges.length === 0) throw conflict(`No edge has learned a boot profile of version ${version.number} yet.`)
    const asked = await db.storeJob.findMany({
      where: { organizationId, versionId, kind: 'clear_profile', state: activeStates },
      select: { edgeId: true },
    })
    const left = edges.filter(({ edgeId }) => !asked.some((job) => job.edgeId === edgeId))
    if (left.length === 0)
      throw conflict(`Every edge has already been asked to clear the boot profile of version ${version.number}.`)
    const jobIds: string[] = []
    for (const { edgeId } of left)
      jobIds.push(await askStore(context, { edgeId, kind: 'clear_profile', vdiskId: vdisk.id, versionId }))
    await recordChange(context, {
      kind: 'version',
      id: versionId,
      name: `${vdisk.name} version ${version.number}`,
      place,
      before: { bootProfile: 'learned' },
      after: { bootProfile: null },
    })
    return { ...(await changedVersionNow(context, versionId)), jobIds }
  })
}
