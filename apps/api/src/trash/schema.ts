import { z } from 'zod'
import { instantOf, listSort } from '../rules/list-sort.ts'
import { pageInput, pageOf } from '../rules/object-fields.ts'
import type { Permission } from '../rules/permissions.ts'
import { uuid } from '../rules/scalars.ts'

/** The kinds that can be deleted and restored, with the permission that both need. */
export const trashKinds = {
  farm: 'farm.change',
  site: 'site.change',
  collection: 'collection.change',
  device: 'device.change',
  vdisk: 'vdisk.change',
  version: 'vdisk.change',
  store: 'store.change',
} as const satisfies Record<string, Permission>
export type TrashKind = keyof typeof trashKinds
export const trashKindNames = Object.keys(trashKinds) as [TrashKind, ...TrashKind[]]

export const trashKeptDays = 30

export const trashSort = listSort({ deletedAt: instantOf('deletedAt') }, '-deletedAt')
export const trashListInput = z.object({
  ...pageInput,
  sort: trashSort.input,
  kind: z.enum(trashKindNames).optional(),
})
export const deletionView = z
  .object({
    id: uuid,
    kind: z.enum(trashKindNames),
    name: z.string(),
    deletedAt: z.iso.datetime(),
    deletedByName: z.string(),
    purgedAt: z.iso.datetime().describe('When it is purged automatically.'),
    with: z
      .array(z.object({ noun: z.string(), count: z.number().int().positive() }))
      .describe("Rows by kind, without the object's own."),
    mayRestore: z.boolean(),
  })
  .meta({ id: 'Deletion' })
export type DeletionView = z.infer<typeof deletionView>
export const trashPage = pageOf(deletionView)
export const deletionInput = z.object({ deletionId: uuid })
export const purgedObject = z.object({ name: z.string() }).meta({ id: 'PurgedObject' })
