import { type SigningKeyStatement, signingKeyStatementsMax } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../context/service-context.ts'

interface SigningKeys {
  /** For all keys except the first, oldest first. */
  keys: SigningKeyStatement[]
  /** The one that signs. */
  newest: { id: string; publicKey: string; seed: Uint8Array }
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
  return { keys, newest: { id: newest.id, publicKey: newest.publicKey, seed: newest.seed } }
}
