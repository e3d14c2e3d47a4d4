import { z } from 'zod'
import { seenRevision } from './object-fields.ts'
import { uuid } from './scalars.ts'

/** The results of creating, changing, moving and deleting objects. */

/** Enough to continue: the object's page is read again. */
export const changedObject = z
  .object({ id: uuid, name: z.string(), revision: seenRevision })
  .meta({ id: 'ChangedObject' })
export type ChangedObject = z.infer<typeof changedObject>

/** The deleted object, and the deletion by which it can be restored. */
export const deletedObject = z.object({ deletionId: uuid, name: z.string() }).meta({ id: 'DeletedObject' })
export type DeletedObject = z.infer<typeof deletedObject>
export const restoreInput = z.object({ deletionId: uuid })
export const restoredObject = z.object({ id: uuid, name: z.string() }).meta({ id: 'RestoredObject' })

/** The result of deleting what no trash keeps. */
export const removedObject = z
  .object({ removed: z.literal(true).describe('Always true.') })
  .meta({ id: 'RemovedObject' })

export const doneView = z.object({ ok: z.literal(true) }).meta({ id: 'Done' })

export const done = { ok: true } as const
