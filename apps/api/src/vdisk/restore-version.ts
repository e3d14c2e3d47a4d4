import type { ServiceContext } from '../context/service-context.ts'
import { requireDeletion, restoreObject } from '../trash/public.ts'
import { withVdiskHeld } from './hold-vdisk.ts'

/** As `restoreObject`, with the vDisk held: its newest version may be another one than before. */
export async function restoreVersion(
  context: ServiceContext,
  deletionId: string,
): Promise<{ id: string; name: string }> {
  const { id: versionId } = await requireDeletion(context, deletionId, ['version'])
  return withVdiskHeld(context, { versionId }, () => restoreObject(context, deletionId, ['version']))
}
