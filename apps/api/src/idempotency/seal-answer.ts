import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const ivSizeBytes = 12
const tagSizeBytes = 16

export interface SealingKey {
  /** The API's own secret. */
  secret: string
  /**
   * The Idempotency-Key as it was sent: without it nobody reads the answer, not even who has the database and the
   * secret.
   */
  key: string
}

/** AES-256-GCM: iv, tag, text. */
export function sealAnswer({ secret, key }: SealingKey, answer: string): Uint8Array<ArrayBuffer> {
  const iv = randomBytes(ivSizeBytes)
  const cipher = createCipheriv('aes-256-gcm', keyOf(secret, key), iv)
  const sealed = Buffer.concat([cipher.update(answer, 'utf8'), cipher.final()])
  return Uint8Array.from(Buffer.concat([iv, cipher.getAuthTag(), sealed]))
}

export function openAnswer({ secret, key }: SealingKey, sealed: Uint8Array): string {
  const iv = sealed.subarray(0, ivSizeBytes)
  const decipher = createDecipheriv('aes-256-gcm', keyOf(secret, key), iv)
  decipher.setAuthTag(sealed.subarray(ivSizeBytes, ivSizeBytes + tagSizeBytes))
  const text = Buffer.concat([decipher.update(sealed.subarray(ivSizeBytes + tagSizeBytes)), decipher.final()])
  return text.toString('utf8')
}

function keyOf(secret: string, key: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, key, 'bootfarm idempotent answer', 32))
}
