/** What other nouns may import, apart from the schemas. */
export { deleteObject } from './delete-object.ts'
export { requireDeletion, restoreObject } from './restore-object.ts'
