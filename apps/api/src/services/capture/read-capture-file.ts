import { AppError } from '../../errors/app-error.ts'
import type { ServiceContext } from '../service-context.ts'

export interface CaptureFile {
  name: string
  pcap: Uint8Array
}

/** A boot's packets as a file to save. Throws `not_found` where none are kept. */
export async function readCaptureFile(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  bootId: string,
): Promise<CaptureFile> {
  const boot = await db.boot.findUnique({
    where: { organizationId_id: { organizationId: actor.organizationId, id: bootId } },
    select: {
      mac: true,
      startedAt: true,
      device: { select: { name: true } },
      capture: { select: { pcap: true } },
    },
  })
  if (!boot?.capture) throw new AppError('not_found', { public: 'No packets of this boot are kept.' })
  const machine = fileNamePart(boot.device?.name ?? '') || fileNamePart(boot.mac)
  const at = boot.startedAt.toISOString().slice(0, 19).replaceAll(':', '')
  return { name: `boot-${machine}-${at}Z.pcap`, pcap: boot.capture.pcap }
}

/** What every file system takes. */
function fileNamePart(text: string): string {
  return text
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 64)
}
