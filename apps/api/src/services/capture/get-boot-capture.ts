import type { BootCapture } from '../../domain/capture-view.ts'
import { listPackets } from '../../domain/pcap/list-packets.ts'
import { AppError } from '../../errors/app-error.ts'
import { findBoot } from '../boot/read-boots.ts'
import type { ServiceContext } from '../service-context.ts'

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
