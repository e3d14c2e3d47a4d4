import { sealBox } from './sealed-box.ts'
import type { SealedStateKeys } from './uplink-state.ts'

/**
 * Returns `sealed` of the edge's desired state, in base64: only the owner of the private key can read it. Every call
 * returns another text.
 * @param sealKey the edge's X25519 key in base64
 * @param ephemeral of this box alone; only tests name it
 */
export function sealStateKeys(
  keys: SealedStateKeys,
  { edgeId, sealKey }: { edgeId: string; sealKey: string },
  ephemeral?: Uint8Array,
): string {
  const content = { info: Buffer.from(sealedInfo(edgeId)), plaintext: Buffer.from(JSON.stringify(keys)) }
  return sealBox(Buffer.from(sealKey, 'base64'), content, ephemeral).toString('base64')
}

/** A box of another edge does not open. */
export function sealedInfo(edgeId: string): string {
  return `bootfarm-state-sealed-v1\n${edgeId}`
}
