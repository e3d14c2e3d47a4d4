import { procedure } from '../http/trpc/trpc.ts'
import { restoredObject, restoreInput } from '../rules/changed-object.ts'
import { restoreObject } from './restore-object.ts'

type RestoredKind = 'farm' | 'site' | 'collection' | 'device' | 'vdisk' | 'store'

/** Builds the procedure that takes an object of this kind out of the trash. */
export function restoring(kind: RestoredKind, name: string = kind) {
  return procedure
    .meta({
      permission: `${kind}.change`,
      place: { kind: 'deletion', id: 'deletionId' },
      rest: { method: 'POST', path: `/trash/{deletionId}/${kind}`, summary: `Restore a ${name} from the trash` },
    })
    .input(restoreInput)
    .output(restoredObject)
    .mutation(({ ctx, input }) => restoreObject(ctx, input.deletionId, [kind]))
}
