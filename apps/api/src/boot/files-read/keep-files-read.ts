import type { FilesRead } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, SystemContext } from '../../context/service-context.ts'
import { keepOfBoot } from '../keep-of-boot.ts'

/** The newest are kept. */
export const filesReadPerSiteMax = 2000

/** Keeps what a boot read in place of what was sent before. Throws `boot_unknown` if this edge has not reported it. */
export async function keepFilesRead(
  { db, clock }: SystemContext,
  edge: AuthenticatedEdge,
  { bootId, report }: { bootId: string; report: FilesRead },
): Promise<void> {
  const { organizationId, siteId } = edge
  const kept = { siteId, report, receivedAt: clock() }
  await keepOfBoot({ db }, edge, {
    bootId,
    table: 'boot_files_read',
    perSiteMax: filesReadPerSiteMax,
    write: (transaction) =>
      transaction.bootFilesRead.upsert({
        where: { organizationId_bootId: { organizationId, bootId } },
        create: { organizationId, bootId, ...kept },
        update: kept,
        select: { bootId: true },
      }),
  })
}
