import type { BootCapture } from '../../domain/capture-view.ts'
import { listPackets } from '../../domain/pcap/list-packets.ts'
import { AppError } from '../../errors/app-error.ts'
import type { ServiceContext } from '../service-context.ts'

/** The packets that were kept of a boot, in words. Throws `not_found` for a boot that there is not. */
export async function getBootCapture({ db, actor }: ServiceContext, bootId: string): Promise<BootCapture> {
  const boot = await db.boot.findUnique({
    where: { organizationId_id: { organizationId: actor.organizationId, id: bootId } },
    select: {
      mac: true,
      capture: { select: { receivedAt: true, packetCount: true, sizeBytes: true, pcap: true } },
    },
  })
  if (!boot) throw new AppError('not_found')
  if (!boot.capture) return null
  const { receivedAt, pcap, ...counts } = boot.capture
  return { ...counts, receivedAt: receivedAt.toISOString(), packets: listPackets(pcap, boot.mac) }
}
