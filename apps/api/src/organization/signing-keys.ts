import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { type SigningKeyStatement, signingKeyStatementsMax } from '@bootfarm/proto/uplink'
import { publicKeyOf, signText } from '@bootfarm/proto/uplink-signature'
import type { DbOrTransaction } from '../context/service-context.ts'
import { kept, opened } from '../secrets/kept-secrets.ts'
import type { SecretPlace } from '../secrets/secret-keys.ts'

const seedSizeBytes = 32

interface SigningKeys {
  /** For all keys except the first, oldest first. */
  keys: SigningKeyStatement[]
  /** The one that signs. */
  newest: { id: string; publicKey: string; sign(text: string): string }
}

/** Returns an organization's keys in their order: each but the first names its predecessor. */
export async function readSigningKeys(
  db: DbOrTransaction,
  { organizationId }: { organizationId: string },
): Promise<SigningKeys> {
  const rows = await db.signingKey.findMany({
    where: { organizationId },
    take: signingKeyStatementsMax + 1,
    select: { id: true, publicKey: true, seed: true, previousKey: true, statement: true },
  })
  const followerOf = new Map(rows.map((row) => [row.previousKey, row]))
  let newest = followerOf.get(null)
  if (!newest) throw new Error('an organization has no signing key')
  const keys: SigningKeyStatement[] = []
  for (let next = followerOf.get(newest.publicKey); next; next = followerOf.get(newest.publicKey)) {
    keys.push({
      id: next.id,
      publicKey: next.publicKey,
      previousPublicKey: newest.publicKey,
      signature: next.statement ?? '',
    })
    newest = next
  }
  const { id, publicKey, seed } = newest
  const sign = (text: string) => signText(text, opened(placeOf(organizationId, id), seed))
  return { keys, newest: { id, publicKey, sign } }
}

/** A new key as it is kept: its private half is sealed. */
export function newSigningKey(organizationId: string) {
  const id = randomUUIDv7()
  const seed = randomBytes(seedSizeBytes)
  return { id, publicKey: publicKeyOf(seed), seed: kept(placeOf(organizationId, id), seed) }
}

function placeOf(organizationId: string, id: string): SecretPlace {
  return { kind: 'signing_key', organizationId, id }
}
