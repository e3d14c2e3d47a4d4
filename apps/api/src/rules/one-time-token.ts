import { createHash, randomBytes } from 'node:crypto'

const tokenSizeBytes = 32
const prefixes = { setup: 'bfs_', invitation: 'bfi_', signUp: 'bfu_' } as const

/** For a link that is used once. Only its hash is stored. */
export function makeToken(kind: keyof typeof prefixes): { token: string; tokenHash: string } {
  const token = `${prefixes[kind]}${randomBytes(tokenSizeBytes).toString('base64url')}`
  return { token, tokenHash: hashToken(token) }
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
