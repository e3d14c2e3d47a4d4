import type { DbTransaction } from '@bootfarm/db'
import type { AuthenticatedEdge, SystemContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { countPackets } from './pcap/list-packets.ts'
import { pcapProblem } from './pcap/pcap-file.ts'
import { findBoot } from './read-boots.ts'

/** The newest are kept. */
export const capturesPerSiteMax = 500

/**
 * Keeps a boot's packets, replaces those sent before, and drops the site's oldest beyond the limit. Throws
 * `invalid_body` for a body that is no pcap file; `boot_unknown` if this edge has not reported the boot.
 */
export async function keepCapture(
  { db, clock }: SystemContext,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { bootId, pcap }: { bootId: string; pcap: Uint8Array<ArrayBuffer> },
): Promise<void> {
  const problem = pcapProblem(pcap)
  if (problem) throw new AppError('invalid_body', { public: problem })
  const kept = {
    siteId,
    pcap,
    sizeBytes: pcap.byteLength,
    packetCount: countPackets(pcap),
    receivedAt: clock(),
  }
  await db.$transaction(async (transaction) => {
    const boot = await findBoot({ db: transaction, actor: { organizationId } }, bootId)
    if (boot?.edgeId !== edgeId) throw new AppError('boot_unknown')
    await transaction.bootCapture.upsert({
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
    delete from boot_capture where organization_id = ${organizationId}::uuid and boot_id in (
      select boot_id from boot_capture where organization_id = ${organizationId}::uuid and site_id = ${siteId}::uuid
      order by received_at desc, boot_id desc offset ${capturesPerSiteMax})`
}
