import { randomUUID } from 'node:crypto'
import type { PromotedVersion } from '../events/event-bus.ts'
import { publishEvents } from './publish-event.ts'

/** version.promoted, of a vDisk whose devices boot another version from now on. */
export async function publishPromotion({ db, now, version, previous, ...vdisk }: PromotedVersion): Promise<void> {
  const { organizationId, farmId, vdiskId, vdiskName } = vdisk
  await publishEvents(db, now, [
    {
      organizationId,
      type: 'version.promoted',
      // The same version may be promoted again, after a newer one came and went.
      subject: `${version.id} ${randomUUID()}`,
      data: {
        farmId,
        vdiskId,
        vdiskName,
        versionId: version.id,
        versionNumber: version.number,
        previousVersionId: previous?.id ?? null,
        previousVersionNumber: previous?.number ?? null,
      },
    },
  ])
}
