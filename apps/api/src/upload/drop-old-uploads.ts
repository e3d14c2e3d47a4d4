import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import { activeStates } from '../store/public.ts'
import type { Uploads } from './uploads.ts'

/** Removes uploads that expired and that no import takes, and bytes that belong to no upload any more. */
export async function dropOldUploads({ db, clock, uploads }: PlatformContext & { uploads: Uploads }): Promise<void> {
  if (!uploads.areOpen) return
  const { files } = uploads
  const stored = new Set(await files.organizationIds())
  await forEachOrganization({ db }, async (organizationId) => {
    const isKept = stored.delete(organizationId)
    const uploadIds = isKept ? await files.uploadIds(organizationId) : []
    const known = await inOrganization(db, organizationId, (tenant) => dropExpired(tenant, organizationId, clock()))
    // A row exists before its first byte.
    for (const uploadId of uploadIds) if (!known.has(uploadId)) await uploads.delete({ organizationId, uploadId })
  })
  for (const organizationId of stored) await files.deleteOrganization(organizationId)
}

/** Returns the ids of those that stay. */
async function dropExpired(db: DbOrTransaction, organizationId: string, now: Date): Promise<Set<string>> {
  const jobs = await db.storeJob.findMany({
    where: { organizationId, state: activeStates, uploadId: { not: null } },
    select: { uploadId: true },
  })
  const taken = jobs.flatMap(({ uploadId }) => uploadId ?? [])
  await db.upload.deleteMany({ where: { organizationId, expiresAt: { lte: now }, id: { notIn: taken } } })
  const rows = await db.upload.findMany({ where: { organizationId }, select: { id: true } })
  return new Set(rows.map(({ id }) => id))
}
