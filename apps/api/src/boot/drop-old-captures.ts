import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'

export const captureKeptDays = 30
/** Rows of one statement: each holds up to 256 KiB. */
const dropAtOnceMax = 200

const dayMs = 86_400_000

/** Drops what has been kept for longer than `captureKeptDays`, of all organizations. @returns how many */
export async function dropOldCaptures({ db, clock }: PlatformContext): Promise<number> {
  const before = new Date(clock().getTime() - captureKeptDays * dayMs)
  let dropped = 0
  await forEachOrganization({ db }, async (organizationId) => {
    for (let count = dropAtOnceMax; count === dropAtOnceMax; dropped += count)
      count = await inOrganization(
        db,
        organizationId,
        (transaction) => transaction.$executeRaw`
          delete from boot_capture where organization_id = ${organizationId}::uuid and boot_id in (
            select boot_id from boot_capture where organization_id = ${organizationId}::uuid and received_at < ${before}
            order by received_at limit ${dropAtOnceMax})`,
      )
  })
  return dropped
}
