import { chooseMenuOfCollection } from '../boot-menu/public.ts'
import { chosenMenu, setMenuOfCollectionInput } from '../boot-menu/schema.ts'
import { procedure, router } from '../http/trpc/trpc.ts'
import { chosenSetResult, setOfCollectionInput } from '../rules/boot-programs.ts'
import { changedObject, deletedObject } from '../rules/changed-object.ts'
import { chooseForCollection } from '../site/public.ts'
import { restoring } from '../trash/restore-router.ts'
import { createCollection, removeCollection, updateCollection } from './change-collection.ts'
import { getCollection, listCollections } from './read-collections.ts'
import {
  collectionDetail,
  collectionGetInput,
  collectionListInput,
  collectionPage,
  createCollectionInput,
  removeCollectionInput,
  updateCollectionInput,
} from './schema.ts'

export const collectionRouter = router({
  list: procedure
    .meta({
      permission: 'collection.read',
      place: 'visible',
      rest: { method: 'GET', path: '/collections', summary: 'Collections' },
    })
    .input(collectionListInput)
    .output(collectionPage)
    .query(({ ctx, input }) => listCollections(ctx, input)),
  setBootProgramSet: procedure
    .meta({
      permission: 'collection.change',
      place: { kind: 'collection', id: 'collectionId' },
      rest: {
        method: 'PUT',
        path: '/collections/{collectionId}/boot-program-set',
        summary: 'Choose the boot programs of a collection',
      },
    })
    .input(setOfCollectionInput)
    .output(chosenSetResult)
    .mutation(({ ctx, input }) => chooseForCollection(ctx, input)),
  setBootMenu: procedure
    .meta({
      permission: 'collection.change',
      place: { kind: 'collection', id: 'collectionId' },
      rest: {
        method: 'PUT',
        path: '/collections/{collectionId}/boot-menu',
        summary: 'Choose the boot menu of a collection',
      },
    })
    .input(setMenuOfCollectionInput)
    .output(chosenMenu)
    .mutation(({ ctx, input }) => chooseMenuOfCollection(ctx, input)),
  get: procedure
    .meta({
      permission: 'collection.read',
      place: { kind: 'collection', id: 'collectionId' },
      rest: { method: 'GET', path: '/collections/{collectionId}', summary: 'One collection' },
    })
    .input(collectionGetInput)
    .output(collectionDetail)
    .query(({ ctx, input }) => getCollection(ctx, input.collectionId)),
  create: procedure
    .meta({
      permission: 'collection.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'POST',
        path: '/collections',
        summary: 'Create a collection',
        creates: '/collections/{id}',
      },
    })
    .input(createCollectionInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => createCollection(ctx, input)),
  update: procedure
    .meta({
      permission: 'collection.change',
      place: { kind: 'collection', id: 'collectionId' },
      rest: { method: 'PATCH', path: '/collections/{collectionId}', summary: 'Edit a collection' },
    })
    .input(updateCollectionInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateCollection(ctx, input)),
  remove: procedure
    .meta({
      permission: 'collection.change',
      place: { kind: 'collection', id: 'collectionId' },
      rest: {
        method: 'DELETE',
        path: '/collections/{collectionId}',
        summary: 'Move a collection to the trash',
      },
    })
    .input(removeCollectionInput)
    .output(deletedObject)
    .mutation(({ ctx, input }) => removeCollection(ctx, input)),
  restore: restoring('collection'),
})
