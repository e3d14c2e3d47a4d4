export { deleteObject, requireDeletion, restoreObject } from './restore-object.ts'
