/** What other nouns may import, apart from the schemas. */
export { insertOrganization } from './create-organization.ts'
export { ensureMember } from './ensure-member.ts'
export { requireSelfService } from './found-organization.ts'
export { freeSlug } from './free-slug.ts'
export { requireNotSuspended } from './require-not-suspended.ts'
export { roomFor } from './room-for.ts'
export { rotateSigningKey } from './rotate-signing-key.ts'
