import { createDecipheriv, createPrivateKey, createPublicKey, diffieHellman } from 'node:crypto'
import { sealedInfo } from '../src/seal-state.ts'
import { messageKey } from '../src/sealed-box.ts'
import { type SealedStateKeys, sealedStateKeys } from '../src/uplink-state.ts'

const keySize = 32
const tagSize = 16

/**
 * Returns the keys in `sealed` of a desired state, as the edge reads them. Throws if the box is not for it.
 * @param secret the edge's raw X25519 key: its `seal.key`
 */
export function openStateKeys(
  sealed: string,
  { edgeId, secret }: { edgeId: string; secret: Uint8Array },
): SealedStateKeys {
  const box = Buffer.from(sealed, 'base64')
  const encapsulated = box.subarray(0, keySize)
  const raw = (prefix: string, key: Uint8Array) => Buffer.concat([Buffer.from(prefix, 'hex'), key])
  const privateKey = createPrivateKey({
    key: raw('302e020100300506032b656e04220420', secret),
    format: 'der',
    type: 'pkcs8',
  })
  const publicKey = createPublicKey({ key: raw('302a300506032b656e032100', encapsulated), format: 'der', type: 'spki' })
  const recipient = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-keySize)
  const dh = diffieHellman({ privateKey, publicKey })
  const { key, nonce } = messageKey(dh, { encapsulated, recipient, info: Buffer.from(sealedInfo(edgeId)) })
  const decipher = createDecipheriv('chacha20-poly1305', key, nonce, { authTagLength: tagSize })
  decipher.setAuthTag(box.subarray(-tagSize))
  const plaintext = Buffer.concat([decipher.update(box.subarray(keySize, -tagSize)), decipher.final()])
  return sealedStateKeys.parse(JSON.parse(plaintext.toString()))
}
