export { createAccount } from './create-account.ts'
export { readGrants, readKeyOwner } from './find-actor.ts'
export { hashPassword } from './password-hash.ts'
export { dropOldAttempts } from './take-attempt.ts'
