import { purgedObject, purgeInput, trashListInput, trashPage } from '../../domain/trash-view.ts'
import { listDeletions } from '../../services/trash/list-deletions.ts'
import { purgeDeletion } from '../../services/trash/purge-deletion.ts'
import { procedure, router } from '../trpc.ts'

export const trashRouter = router({
  list: procedure
    .meta({
      permission: 'trash.read',
      place: 'visible',
      rest: { method: 'GET', path: '/trash', summary: 'What was deleted and can be restored' },
    })
    .input(trashListInput)
    .output(trashPage)
    .query(({ ctx, input }) => listDeletions(ctx, input)),
  purge: procedure
    .meta({
      permission: 'trash.purge',
      place: { kind: 'deletion', id: 'deletionId' },
      rest: { method: 'DELETE', path: '/trash/{deletionId}', summary: 'Delete for ever' },
    })
    .input(purgeInput)
    .output(purgedObject)
    .mutation(({ ctx, input }) => purgeDeletion(ctx, input.deletionId)),
})
