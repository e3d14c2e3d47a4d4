import { createHmac, randomBytes } from 'node:crypto'

const secretSizeBytes = 32

export function newWebhookSecret(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(randomBytes(secretSizeBytes))
}

/** The format that receivers' libraries require: https://www.standardwebhooks.com. */
export function shownSecret(secret: Uint8Array): string {
  return `whsec_${Buffer.from(secret).toString('base64')}`
}

interface Message {
  id: string
  at: Date
  body: string
}

/** Headers of Standard Webhooks; a signature for each secret, the newest first, so that a receiver may know either. */
export function signatureHeaders({ id, at, body }: Message, secrets: Uint8Array[]): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  )
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
