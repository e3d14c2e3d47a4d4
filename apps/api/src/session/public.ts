/** What other nouns may import, apart from the schemas. */
export { createAccount } from './create-account.ts'
export { readGrants } from './find-actor.ts'
