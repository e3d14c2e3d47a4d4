import { createHash, randomBytes } from 'node:crypto'
import { apiKeyPrefix } from './schema.ts'

const secretSizeBytes = 32
const shownLength = apiKeyPrefix.length + 6

/** 256 random bits cannot be guessed, so a plain hash is enough. */
export function newApiKeySecret(): { secret: string; prefix: string; secretHash: string } {
  const secret = apiKeyPrefix + randomBytes(secretSizeBytes).toString('base64url')
  return { secret, prefix: secret.slice(0, shownLength), secretHash: hashApiKey(secret) }
}

export function hashApiKey(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
