import { chosenMenu, setMenuOfCollectionInput } from '../../domain/boot-menu-view.ts'
import { chosenSetResult, setOfCollectionInput } from '../../domain/boot-programs.ts'
import { collectionListInput, collectionPage } from '../../domain/farm-view.ts'
import { chooseMenuOfCollection } from '../../services/boot-menu/choose-menu.ts'
import { listCollections } from '../../services/collection/list-collections.ts'
import { chooseForCollection } from '../../services/site/choose-boot-programs.ts'
import { procedure, router } from '../trpc.ts'

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
})
