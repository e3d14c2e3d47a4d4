import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

/** Ed25519 (RFC 8032) over the texts of UPLINK.md. Keys are the raw 32 bytes in standard base64. */

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')

export interface UplinkRequestFacts {
  method: string
  /** Path and query as sent. */
  path: string
  /** `-` for enrolment. */
  edgeId: string
  bootEpoch: number
  counter: number
  body: Uint8Array
}

export function uplinkSignedText(facts: UplinkRequestFacts): string {
  const digest = createHash('sha256').update(facts.body).digest('hex')
  return ['bootfarm-uplink-v1', facts.method, facts.path, facts.edgeId, facts.bootEpoch, facts.counter, digest].join(
    '\n',
  )
}

export function stateSignedText(payload: string): string {
  return `bootfarm-state-v1\n${payload}`
}

/** @param seed the 32-byte private seed, raw */
export function signText(text: string, seed: Uint8Array): string {
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' })
  return sign(null, Buffer.from(text), key).toString('base64')
}

/** Returns false for a wrong signature and for anything that is not a key or a signature. */
export function verifyText(text: string, signature: string, publicKey: string): boolean {
  const key = verificationKey(publicKey)
  return key !== null && verifyWith(text, signature, key)
}

/** Returns a public key in the form that `verifyWith` takes, for many signatures; null for anything that is no key. */
export function verificationKey(publicKey: string): KeyObject | null {
  const raw = Buffer.from(publicKey, 'base64')
  if (raw.length !== 32) return null
  try {
    return createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' })
  } catch {
    return null
  }
}

/** Returns false for a wrong signature and for anything that is not one. */
export function verifyWith(text: string, signature: string, key: KeyObject): boolean {
  const raw = Buffer.from(signature, 'base64')
  if (raw.length !== 64) return false
  try {
    return verify(null, Buffer.from(text), key, raw)
  } catch {
    return false
  }
}

/** Returns the raw public key, in base64, of a raw 32-byte seed. */
export function publicKeyOf(seed: Uint8Array): string {
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' })
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
}
