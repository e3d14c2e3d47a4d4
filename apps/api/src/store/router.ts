import { procedure, router } from '../http/trpc/trpc.ts'
import { changedObject, deletedObject } from '../rules/changed-object.ts'
import { restoring } from '../trash/restore-router.ts'
import { createStore, removeStore, updateStore } from './change-store.ts'
import { getStore, listStores } from './list-stores.ts'
import {
  createStoreInput,
  removeStoreInput,
  storeDetail,
  storeGetInput,
  storeListInput,
  storePage,
  updateStoreInput,
} from './schema.ts'

export const storeRouter = router({
  list: procedure
    .meta({
      permission: 'store.read',
      place: 'visible',
      rest: { method: 'GET', path: '/stores', summary: 'Stores' },
    })
    .input(storeListInput)
    .output(storePage)
    .query(({ ctx, input }) => listStores(ctx, input)),
  get: procedure
    .meta({
      permission: 'store.read',
      place: { kind: 'store', id: 'storeId' },
      rest: { method: 'GET', path: '/stores/{storeId}', summary: 'One store' },
    })
    .input(storeGetInput)
    .output(storeDetail)
    .query(({ ctx, input }) => getStore(ctx, input.storeId)),
  create: procedure
    .meta({
      permission: 'store.change',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'POST', path: '/stores', summary: 'Create a store', creates: '/stores/{id}' },
    })
    .input(createStoreInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => createStore(ctx, input)),
  update: procedure
    .meta({
      permission: 'store.change',
      place: { kind: 'store', id: 'storeId' },
      rest: { method: 'PATCH', path: '/stores/{storeId}', summary: 'Edit a store' },
    })
    .input(updateStoreInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateStore(ctx, input)),
  remove: procedure
    .meta({
      permission: 'store.change',
      place: { kind: 'store', id: 'storeId' },
      rest: { method: 'DELETE', path: '/stores/{storeId}', summary: 'Move a store to the trash' },
    })
    .input(removeStoreInput)
    .output(deletedObject)
    .mutation(({ ctx, input }) => removeStore(ctx, input)),
  restore: restoring('store'),
})
