import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { invitationMail } from '../domain/mail.ts'
import { createMailer } from './mailer.ts'

interface Taken {
  to: string[]
  text: string
}

const taken: Taken[] = []
const server = new SMTPServer({
  disabledCommands: ['AUTH', 'STARTTLS'],
  onData(stream, session, done) {
    let text = ''
    stream.on('data', (chunk) => {
      text += String(chunk)
    })
    stream.on('end', () => {
      taken.push({ to: session.envelope.rcptTo.map(({ address }) => address), text })
      done()
    })
  },
})
let smtpUrl: string

beforeAll(async () => {
  const listening = server.listen(0, '127.0.0.1')
  await new Promise((resolve) => listening.once('listening', resolve))
  smtpUrl = `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`
})
afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())))

const from = 'Bootfarm <boot@example.test>'
const mail = (organizationName: string, email = 'new@example.test') =>
  invitationMail({
    ...{ email, organizationName, invitedByName: 'Owner', role: 'viewer of the whole organization' },
    ...{ url: 'http://localhost:3000/invitation/bfi_token', daysValid: 7 },
  })

test('a mail reaches the server that SMTP_URL names, with the link whole', async () => {
  const send = createMailer({ smtpUrl, from, log: () => {} })
  expect(await send(mail('Acme'))).toBe(true)
  expect(taken.at(-1)?.to).toEqual(['new@example.test'])
  expect(taken.at(-1)?.text).toMatch(/^Subject: Invitation to Acme on Bootfarm\r?$/m)
  expect(taken.at(-1)?.text).toContain('http://localhost:3000/invitation/bfi_token')
})

test('a name with line ends adds no header, and an address with them no receiver', async () => {
  const send = createMailer({ smtpUrl, from, log: () => {} })
  await send(mail('Acme\r\nBcc: all@example.test\r\n\r\nEvil'))
  const { to, text = '' } = taken.at(-1) ?? {}
  expect(to).toEqual(['new@example.test'])
  expect(text.split(/\r?\n\r?\n/)[0]).not.toMatch(/^Bcc:/im)
  const count = taken.length
  await send(mail('Acme', 'a@example.test\r\nRCPT TO:<b@example.test>'))
  expect(taken.slice(count).flatMap((one) => one.to)).not.toContain('b@example.test')
})

test('without a server, and where it does not answer, the mail is one line of the log', async () => {
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  expect(await createMailer({ smtpUrl: null, from, log })(mail('Acme\nTwo'))).toBe(false)
  expect(await createMailer({ smtpUrl: 'smtp://127.0.0.1:1', from, log })(mail('Acme'))).toBe(false)
  for (const line of lines) {
    expect(line).not.toContain('\n')
    expect(line).toContain('to new@example.test')
    expect(line).toContain('http://localhost:3000/invitation/bfi_token')
  }
  expect(lines).toHaveLength(2)
})
