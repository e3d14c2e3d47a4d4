import { type DbTransaction, inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'

/** Of captures, and of what boots read. */
export const captureKeptDays = 30
/** Rows of one statement: each holds up to 256 KiB. */
const dropAtOnceMax = 200

const dayMs = 86_400_000

interface Old {
  organizationId: string
  before: Date
}

const dropSome = [
  (transaction: DbTransaction, { organizationId, before }: Old) => transaction.$executeRaw`
    delete from boot_capture where organization_id = ${organizationId}::uuid and boot_id in (
      select boot_id from boot_capture where organization_id = ${organizationId}::uuid and received_at < ${before}
      order by received_at limit ${dropAtOnceMax})`,
  (transaction: DbTransaction, { organizationId, before }: Old) => transaction.$executeRaw`
    delete from boot_files_read where organization_id = ${organizationId}::uuid and boot_id in (
      select boot_id from boot_files_read where organization_id = ${organizationId}::uuid and received_at < ${before}
      order by received_at limit ${dropAtOnceMax})`,
]

/** Drops what has been kept for longer than `captureKeptDays`, of all organizations. @returns how many rows */
export async function dropOldCaptures({ db, clock }: PlatformContext): Promise<number> {
  const before = new Date(clock().getTime() - captureKeptDays * dayMs)
  let dropped = 0
  await forEachOrganization({ db }, async (organizationId) => {
    for (const drop of dropSome)
      for (let count = dropAtOnceMax; count === dropAtOnceMax; dropped += count)
        count = await inOrganization(db, organizationId, (transaction) => drop(transaction, { organizationId, before }))
  })
  return dropped
}
