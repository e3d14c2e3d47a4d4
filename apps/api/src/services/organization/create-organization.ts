import { randomBytes } from 'node:crypto'
import { publicKeyOf } from '@bootfarm/proto/uplink-signature'
import type { SystemContext } from '../service-context.ts'

const seedSizeBytes = 32

interface NewOrganization {
  slug: string
  name: string
}

/** An organization with the key that signs its desired states, and its feed. Returns the id; `slug` is unique. */
export async function createOrganization(
  { db }: SystemContext,
  { slug, name }: NewOrganization,
): Promise<string> {
  const seed = randomBytes(seedSizeBytes)
  const organization = await db.organization.create({
    data: {
      slug,
      name,
      bootFeed: { create: {} },
      signingKeys: { create: { seed: new Uint8Array(seed), publicKey: publicKeyOf(seed) } },
    },
    select: { id: true },
  })
  return organization.id
}
