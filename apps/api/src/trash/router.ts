import { procedure, router } from '../http/trpc/trpc.ts'
import { getDeletion, listDeletions } from './list-deletions.ts'
import { purgeDeletion } from './purge-deletion.ts'
import { deletionInput, deletionView, purgedObject, trashListInput, trashPage } from './schema.ts'

export const trashRouter = router({
  list: procedure
    .meta({
      permission: 'trash.read',
      place: 'visible',
      rest: { method: 'GET', path: '/trash', summary: 'Deleted objects that can be restored' },
    })
    .input(trashListInput)
    .output(trashPage)
    .query(({ ctx, input }) => listDeletions(ctx, input)),
  get: procedure
    .meta({
      permission: 'trash.read',
      place: { kind: 'deletion', id: 'deletionId' },
      rest: { method: 'GET', path: '/trash/{deletionId}', summary: 'A deleted object that can be restored' },
    })
    .input(deletionInput)
    .output(deletionView)
    .query(({ ctx, input }) => getDeletion(ctx, input)),
  purge: procedure
    .meta({
      permission: 'trash.purge',
      place: { kind: 'deletion', id: 'deletionId' },
      rest: { method: 'DELETE', path: '/trash/{deletionId}', summary: 'Delete permanently' },
    })
    .input(deletionInput)
    .output(purgedObject)
    .mutation(({ ctx, input }) => purgeDeletion(ctx, input.deletionId)),
})
