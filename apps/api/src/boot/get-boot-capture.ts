import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { BootCapture } from './capture-schema.ts'
import { listPackets } from './pcap/list-packets.ts'
import { findBoot } from './read-boots.ts'

/** The packets that were kept of a boot, in words. Throws `not_found` for a boot that there is not. */
export async function getBootCapture(context: ServiceContext, bootId: string): Promise<BootCapture> {
  const { db, actor } = context
  const boot = await findBoot(context, bootId)
  if (!boot) throw new AppError('not_found')
  const capture = await db.bootCapture.findUnique({
    where: { organizationId_bootId: { organizationId: actor.organizationId, bootId } },
    select: { receivedAt: true, packetCount: true, sizeBytes: true, pcap: true },
  })
  if (!capture) return null
  const { receivedAt, pcap, ...counts } = capture
  return { ...counts, receivedAt: receivedAt.toISOString(), packets: listPackets(pcap, boot.mac) }
}
