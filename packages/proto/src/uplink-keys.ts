import { z } from 'zod'
import { base64, uuid } from './uplink-values.ts'

/** How keys succeed each other; see UPLINK.md, "New keys". A statement holds forever: it contains no time. */

/** An edge's newest statements; it sends them all where its key is not accepted. */
export const edgeKeyStatementsMax = 16
/** An organization's statements; an envelope carries all of them, for an edge that was away for years. */
export const signingKeyStatementsMax = 256

export const edgeKeyStatement = z.object({
  oldPublicKey: base64(32),
  newPublicKey: base64(32),
  /** Signed with the old key, over `edgeKeyText`. */
  signature: base64(64),
})
export type EdgeKeyStatement = z.infer<typeof edgeKeyStatement>

/** Oldest first; each begins where the previous one ends. The newest key signs the request. */
export const rotateKeyRequest = z.object({
  version: z.literal(1),
  statements: z.array(edgeKeyStatement).min(1).max(edgeKeyStatementsMax),
})
export type RotateKeyRequest = z.infer<typeof rotateKeyRequest>
export const rotateKeyAnswer = z.object({ publicKey: base64(32) })

export const signingKeyStatement = z.object({
  id: uuid,
  publicKey: base64(32),
  previousPublicKey: base64(32),
  /** Signed with the previous key, over `signingKeyText`. */
  signature: base64(64),
})
export type SigningKeyStatement = z.infer<typeof signingKeyStatement>

export function edgeKeyText(
  edgeId: string,
  { oldPublicKey, newPublicKey }: Pick<EdgeKeyStatement, 'oldPublicKey' | 'newPublicKey'>,
): string {
  return ['bootfarm-edge-key-v1', edgeId, oldPublicKey, newPublicKey].join('\n')
}

export function signingKeyText(
  organizationId: string,
  { id, publicKey, previousPublicKey }: Omit<SigningKeyStatement, 'signature'>,
): string {
  return ['bootfarm-signing-key-v1', organizationId, previousPublicKey, id, publicKey].join('\n')
}
