import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Mail, SendMail } from '../rules/mail.ts'

const ivSizeBytes = 12
const tagSizeBytes = 16

interface QueueOptions {
  /** The secret of the installation: links in mails open accounts, and must not be read from the database. */
  secret: string
  /** Keeps a sealed mail until it is delivered. */
  keep: (sealed: string) => Promise<void>
  log: (line: string) => void
}

/**
 * Keeps each mail in the queue, so that a mail server that is away for an hour loses none. Resolves with whether the
 * queue has it, and never rejects: some callers do not wait.
 */
export function queueMails({ secret, keep, log }: QueueOptions): SendMail {
  return async (mail) => {
    try {
      await keep(sealMail(secret, mail))
      return true
    } catch (error) {
      log(`mail not queued (${error instanceof Error ? error.message : String(error)})`)
      return false
    }
  }
}

/** Delivers a mail of the queue. Throws if the mail server did not take it, so that it is tried again. */
export async function deliverQueued(
  sealed: string,
  { secret, send }: { secret: string; send: SendMail },
): Promise<void> {
  if (!(await send(openMail(secret, sealed)))) throw new Error('the mail server did not take it')
}

function sealMail(secret: string, mail: Mail): string {
  const iv = randomBytes(ivSizeBytes)
  const cipher = createCipheriv('aes-256-gcm', keyOf(secret), iv)
  const sealed = Buffer.concat([cipher.update(JSON.stringify(mail), 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64')
}

/** Throws for one that was sealed with another secret, or changed. */
function openMail(secret: string, text: string): Mail {
  const sealed = Buffer.from(text, 'base64')
  const decipher = createDecipheriv('aes-256-gcm', keyOf(secret), sealed.subarray(0, ivSizeBytes))
  decipher.setAuthTag(sealed.subarray(ivSizeBytes, ivSizeBytes + tagSizeBytes))
  const opened = Buffer.concat([decipher.update(sealed.subarray(ivSizeBytes + tagSizeBytes)), decipher.final()])
  return JSON.parse(opened.toString('utf8')) as Mail
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', 'bootfarm queued mail', 32))
}
