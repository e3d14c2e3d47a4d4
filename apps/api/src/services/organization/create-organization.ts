import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { inOrganization } from '@bootfarm/db'
import { publicKeyOf } from '@bootfarm/proto/uplink-signature'
import type { PlatformContext } from '../service-context.ts'
import { ensureMember } from './ensure-member.ts'

const seedSizeBytes = 32

interface NewOrganization {
  slug: string
  name: string
  /** Becomes its owner. */
  ownerUserId?: string
}

/** An organization with the key that signs its desired states, and its feed. Returns the id; `slug` is unique. */
export async function createOrganization(
  { db }: PlatformContext,
  { slug, name, ownerUserId }: NewOrganization,
): Promise<string> {
  const seed = randomBytes(seedSizeBytes)
  const id = randomUUIDv7()
  await inOrganization(db, id, async (transaction) => {
    await transaction.organization.create({
      data: {
        ...{ id, slug, name },
        bootFeed: { create: {} },
        signingKeys: { create: { seed: new Uint8Array(seed), publicKey: publicKeyOf(seed) } },
      },
      select: { id: true },
    })
    if (ownerUserId)
      await ensureMember(transaction, { organizationId: id, userId: ownerUserId, role: 'owner' })
  })
  return id
}
