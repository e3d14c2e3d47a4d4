export { createAccount } from './create-account.ts'
export { readGrants } from './find-actor.ts'
export { hashPassword } from './password-hash.ts'
