export { deleteObject, moveToTrash, requireDeletion, restoreObject } from './restore-object.ts'
