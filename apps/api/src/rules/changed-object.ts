import { z } from 'zod'
import { seenRevision } from './object-fields.ts'

/** What creating, changing, moving and deleting objects gives. */

const uuid = z.uuid()

/** Enough to go on with: the object's page is read anew. */
export const changedObject = z.object({ id: uuid, name: z.string(), revision: seenRevision })
export type ChangedObject = z.infer<typeof changedObject>

/** What was deleted, and by which deletion it can be restored. */
export const deletedObject = z.object({ deletionId: uuid, name: z.string() })
export type DeletedObject = z.infer<typeof deletedObject>
export const restoreInput = z.object({ deletionId: uuid })
export const restoredObject = z.object({ id: uuid, name: z.string() })

export const doneView = z.object({ ok: z.literal(true) })

export const done = { ok: true } as const
