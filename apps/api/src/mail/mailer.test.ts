import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPostOffice } from '../../test/post-office.ts'
import { invitationMail } from '../rules/mail.ts'
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
    email,
    organizationName,
    invitedByName: 'Owner',
    role: 'viewer of the whole organization',
    url: 'http://localhost:3000/invitation/bfi_token',
    daysValid: 7,
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

test('without a server the mail is one line of the log, with its link', async () => {
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  expect(await createMailer({ smtpUrl: null, from, log })(mail('Acme\nTwo'))).toBe(false)
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('\n')
  expect(lines[0]).toContain('to new@example.test')
  expect(lines[0]).toContain('http://localhost:3000/invitation/bfi_token')
})

test('if the mail server does not answer or refuses, the log reports it without the link or the password', async () => {
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  const office = await openPostOffice('another-word')
  const { port } = new URL(office.url)
  for (const url of ['smtp://boot:s3cret-word@127.0.0.1:1', `smtp://boot:s3cret-word@127.0.0.1:${port}`])
    expect(await createMailer({ smtpUrl: url, from, log })(mail('Acme\nTwo'))).toBe(false)
  await office.close()
  expect(lines[1]).toContain('535')
  expect(await createMailer({ smtpUrl, from, log })(mail('Acme', 'a@example.test b'))).toBe(false)
  expect(lines).toHaveLength(3)
  for (const line of lines) {
    expect(line).toMatch(/^mail not sent \(.+\): to .*: Invitation to Acme( Two)? on Bootfarm$/)
    expect(line).not.toMatch(/bfi_token|s3cret-word/)
    expect(line).not.toContain(Buffer.from('\0boot\0s3cret-word').toString('base64'))
  }
})
