import type { SystemContext } from '../../context/service-context.ts'
import { readSigningKeys } from '../../organization/signing-keys.ts'

interface SignedTime {
  nonce: string
  unixMs: number
  signature: string
}

/** Signs the time for one edge's nonce by its organization's key: core/update/signed_time.zig verifies it. */
export async function signTime(
  { db, clock }: SystemContext,
  { organizationId, nonce }: { organizationId: string; nonce: string },
): Promise<SignedTime> {
  const { newest } = await readSigningKeys(db, { organizationId })
  const unixMs = clock().getTime()
  return { nonce, unixMs, signature: newest.sign(`bootfarm-time-v1\n${nonce}\n${unixMs}\n`) }
}
