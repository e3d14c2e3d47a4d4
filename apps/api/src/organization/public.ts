/** What other nouns may import, apart from the schemas. */
export { insertOrganization } from './create-organization.ts'
export { ensureMember } from './ensure-member.ts'
export { freeSlug } from './free-slug.ts'
export { requireNotSuspended } from './require-not-suspended.ts'
export { requireSelfService } from './require-self-service.ts'
export { roomFor } from './room-for.ts'
export { rotateSigningKey } from './rotate-signing-key.ts'
