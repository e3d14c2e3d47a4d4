import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { bootFileName } from './boot-file-name.ts'
import { listPackets } from './pcap/list-packets.ts'
import { findBoot } from './read-boots.ts'
import type { BootCapture } from './schema.ts'

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

interface CaptureFile {
  name: string
  pcap: Uint8Array
}

/** A boot's packets as a file to save. Throws `not_found` where none are kept. */
export async function readCaptureFile(
  context: Pick<ServiceContext, 'db' | 'actor'>,
  bootId: string,
): Promise<CaptureFile> {
  const { db, actor } = context
  const boot = await findBoot(context, bootId)
  const capture = await db.bootCapture.findUnique({
    where: { organizationId_bootId: { organizationId: actor.organizationId, bootId } },
    select: { pcap: true },
  })
  if (!boot || !capture) throw new AppError('not_found', { public: 'No packet capture of this boot is stored.' })
  return { name: bootFileName(boot, 'pcap'), pcap: capture.pcap }
}
