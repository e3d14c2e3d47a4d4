import { createTransport } from 'nodemailer'
import type { Mail, SendMail } from '../rules/mail.ts'

export const defaultSender = 'Bootfarm <bootfarm@localhost>'
const connectionLimitMs = 10_000
const socketLimitMs = 20_000

interface MailerOptions {
  /** smtp:// or smtps://, with name and password if the server needs them; null if no server is set. */
  smtpUrl: string | null
  /** The sender, e.g. `Bootfarm <boot@example.org>`. */
  from: string
  /** The log for mails that no server accepts: one line each. Their links are included only if no server is set. */
  log: (line: string) => void
}

/**
 * Sends mails by SMTP; if no server is set, to the log, so that the operator can pass the link on. If one is set, a
 * link that opens an account stays out of the log, even if the server refuses the mail.
 */
export function createMailer({ smtpUrl, from, log }: MailerOptions): SendMail {
  if (!smtpUrl)
    return async (mail) => {
      log(`${lineOf(mail, 'SMTP_URL is not set')}: ${onOneLine(mail.text)}`)
      return false
    }
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: connectionLimitMs,
    socketTimeout: socketLimitMs,
    // A mail has no attachments: nothing is read from files or fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return async (mail) => {
    if (/[\s,;:<>"()]/.test(mail.to)) {
      log(lineOf(mail, 'this is not one address'))
      return false
    }
    try {
      await transport.sendMail({ from, ...mail })
      return true
    } catch (error) {
      log(lineOf(mail, error instanceof Error ? error.message : String(error)))
      return false
    }
  }
}

function lineOf({ to, subject }: Mail, reason: string): string {
  return `mail not sent (${onOneLine(reason)}): to ${onOneLine(to)}: ${onOneLine(subject)}`
}

function onOneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
