import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const ivSizeBytes = 12
const tagSizeBytes = 16
/** What sealing adds. */
export const sealSizeBytes = ivSizeBytes + tagSizeBytes

/**
 * AES-256-GCM: iv, tag, sealed bytes.
 * @param key 32 bytes
 * @param place authenticated with them; they open nowhere else
 */
export function sealBytes(key: Uint8Array, bytes: Uint8Array, place = ''): Buffer {
  const iv = randomBytes(ivSizeBytes)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(place))
  const sealed = Buffer.concat([cipher.update(bytes), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed])
}

/** Throws for what another key sealed, or for another place, and for what was changed. */
export function openBytes(key: Uint8Array, sealed: Uint8Array, place = ''): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, ivSizeBytes))
    .setAAD(Buffer.from(place))
    .setAuthTag(sealed.subarray(ivSizeBytes, sealSizeBytes))
  return Buffer.concat([decipher.update(sealed.subarray(sealSizeBytes)), decipher.final()])
}
