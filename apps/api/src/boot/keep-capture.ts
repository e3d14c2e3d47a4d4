import type { AuthenticatedEdge, SystemContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { keepOfBoot } from './keep-of-boot.ts'
import { countPackets } from './pcap/list-packets.ts'
import { pcapProblem } from './pcap/pcap-file.ts'

/** The newest are kept. */
export const capturesPerSiteMax = 500

/**
 * Keeps a boot's packets, and replaces those sent before. Throws `invalid_body` for a body that is no pcap file;
 * `boot_unknown` if this edge has not reported the boot.
 */
export async function keepCapture(
  { db, clock }: SystemContext,
  edge: AuthenticatedEdge,
  { bootId, pcap }: { bootId: string; pcap: Uint8Array<ArrayBuffer> },
): Promise<void> {
  const problem = pcapProblem(pcap)
  if (problem) throw new AppError('invalid_body', { public: problem })
  const { organizationId, siteId } = edge
  const kept = { siteId, pcap, sizeBytes: pcap.byteLength, packetCount: countPackets(pcap), receivedAt: clock() }
  await keepOfBoot({ db }, edge, {
    bootId,
    table: 'boot_capture',
    perSiteMax: capturesPerSiteMax,
    write: (transaction) =>
      transaction.bootCapture.upsert({
        where: { organizationId_bootId: { organizationId, bootId } },
        create: { organizationId, bootId, ...kept },
        update: kept,
        select: { bootId: true },
      }),
  })
}
