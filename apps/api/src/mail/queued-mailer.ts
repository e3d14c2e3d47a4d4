import { hkdfSync } from 'node:crypto'
import type { DbTransaction } from '@bootfarm/db'
import type { Mail, SendMail } from '../rules/mail.ts'
import { openBytes, sealBytes } from '../secrets/sealed-bytes.ts'

interface QueueOptions {
  /** The secret of the installation: links in mails open accounts, and must not be read from the database. */
  secret: string
  /** Keeps a sealed mail until it is delivered; with the transaction, if there is one. */
  keep: (sealed: string, transaction?: DbTransaction) => Promise<void>
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

/** Keeps each mail in the queue if the transaction is committed, and only then. Rejects if the queue refuses it. */
export function queueMailsWithin({ secret, keep }: Pick<QueueOptions, 'secret' | 'keep'>) {
  return (mail: Mail, transaction: DbTransaction): Promise<void> => keep(sealMail(secret, mail), transaction)
}

/** Delivers a mail of the queue. Throws if the mail server did not take it, so that it is tried again. */
export async function deliverQueued(
  sealed: string,
  { secret, send }: { secret: string; send: SendMail },
): Promise<void> {
  if (!(await send(openMail(secret, sealed)))) throw new Error('the mail server did not take it')
}

function sealMail(secret: string, mail: Mail): string {
  return sealBytes(keyOf(secret), Buffer.from(JSON.stringify(mail))).toString('base64')
}

/** Throws for one that was sealed with another secret, or changed. */
function openMail(secret: string, text: string): Mail {
  return JSON.parse(openBytes(keyOf(secret), Buffer.from(text, 'base64')).toString('utf8')) as Mail
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', 'bootfarm queued mail', 32))
}
