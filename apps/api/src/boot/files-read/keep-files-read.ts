import type { DbTransaction } from '@bootfarm/db'
import type { FilesRead } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, SystemContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { findBoot } from '../read-boots.ts'

/** The newest are kept. */
export const filesReadPerSiteMax = 2000

/**
 * Keeps what a boot read, replaces what was sent before, and drops the site's oldest beyond the limit. Throws
 * `boot_unknown` if this edge has not reported the boot.
 */
export async function keepFilesRead(
  { db, clock }: SystemContext,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { bootId, report }: { bootId: string; report: FilesRead },
): Promise<void> {
  const kept = { siteId, report, receivedAt: clock() }
  await db.$transaction(async (transaction) => {
    const boot = await findBoot({ db: transaction, actor: { organizationId } }, bootId)
    if (boot?.edgeId !== edgeId) throw new AppError('boot_unknown')
    await transaction.bootFilesRead.upsert({
      where: { organizationId_bootId: { organizationId, bootId } },
      create: { organizationId, bootId, ...kept },
      update: kept,
      select: { bootId: true },
    })
    await dropOldest(transaction, { organizationId, siteId })
  })
}

async function dropOldest(
  transaction: DbTransaction,
  { organizationId, siteId }: { organizationId: string; siteId: string },
): Promise<void> {
  await transaction.$executeRaw`
    delete from boot_files_read where organization_id = ${organizationId}::uuid and boot_id in (
      select boot_id from boot_files_read
      where organization_id = ${organizationId}::uuid and site_id = ${siteId}::uuid
      order by received_at desc, boot_id desc offset ${filesReadPerSiteMax})`
}
