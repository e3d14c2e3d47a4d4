export { ensureMember, freeSlug, insertOrganization, requireSelfService } from './found-organization.ts'
export { requireNotSuspended } from './require-not-suspended.ts'
export { roomFor } from './room-for.ts'
export { rotateSigningKey } from './rotate-signing-key.ts'
