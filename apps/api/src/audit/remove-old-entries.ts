import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'

/** In one transaction; the rest waits for the next one of the same run. */
const removedAtOnceMax = 5_000

/**
 * Removes entries of the audit log that are older than the installation's owner keeps them, of all organizations. Which
 * those are the database decides (docs/decisions/0013-audit-retention.md). @returns how many
 */
export async function removeOldAuditEntries({ db }: PlatformContext): Promise<number> {
  let count = 0
  await forEachOrganization({ db }, async (organizationId) => {
    for (;;) {
      const [row] = await inOrganization(
        db,
        organizationId,
        (tenant) => tenant.$queryRaw<{ removed: number }[]>`
          select remove_old_audit_entries(${organizationId}::uuid, ${removedAtOnceMax}::int) as removed`,
      )
      const removed = row?.removed ?? 0
      count += removed
      if (removed < removedAtOnceMax) return
    }
  })
  return count
}
