import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { inOrganization } from '@bootfarm/db'
import { publicKeyOf } from '@bootfarm/proto/uplink-signature'
import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import { ensureMember } from './ensure-member.ts'

const seedSizeBytes = 32

interface NewOrganization {
  slug: string
  name: string
  /** Becomes its owner. */
  ownerUserId?: string
  /** Who made it by self-service. */
  foundedByUserId?: string
}

/** An organization with the key that signs its desired states, and its feed. Returns the id; `slug` is unique. */
export async function createOrganization({ db }: PlatformContext, fields: NewOrganization): Promise<string> {
  const id = randomUUIDv7()
  await inOrganization(db, id, (transaction) => insertOrganization(transaction, { ...fields, id }))
  return id
}

/** As `createOrganization`, in a transaction that is already in the organization to be. */
export async function insertOrganization(
  db: DbOrTransaction,
  { id, slug, name, ownerUserId, foundedByUserId }: NewOrganization & { id: string },
): Promise<void> {
  const seed = randomBytes(seedSizeBytes)
  await db.organization.create({
    data: {
      id,
      slug,
      name,
      foundedByUserId: foundedByUserId ?? null,
      bootFeed: { create: {} },
      signingKeys: { create: { seed: new Uint8Array(seed), publicKey: publicKeyOf(seed) } },
    },
    select: { id: true },
  })
  if (ownerUserId) await ensureMember(db, { organizationId: id, userId: ownerUserId, role: 'owner' })
}
