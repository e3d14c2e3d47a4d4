import type { ServiceContext } from '../context/service-context.ts'
import { requireDeletion, restoreObject } from '../trash/public.ts'
import { withVdiskHeld } from './hold-vdisk.ts'

/** Like `restoreObject`, with the vDisk locked: its newest version may change. */
export async function restoreVersion(
  context: ServiceContext,
  deletionId: string,
): Promise<{ id: string; name: string }> {
  const { id: versionId } = await requireDeletion(context, deletionId, ['version'])
  return withVdiskHeld(context, { versionId }, () => restoreObject(context, deletionId, ['version']))
}
