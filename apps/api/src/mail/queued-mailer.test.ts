import { createServer } from 'node:net'
import { openJobQueue } from '@bootfarm/db'
import { createTestDatabase } from '@bootfarm/db/testing'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { openPostOffice } from '../../test/post-office.ts'
import { resetMail } from '../rules/mail.ts'
import { createMailer } from './mailer.ts'
import { deliverQueued, queueMails } from './queued-mailer.ts'

const secret = 'a secret of the installation that is long enough'
const from = 'Bootfarm <boot@example.test>'
const mail = resetMail({ email: 'new@example.test', url: 'http://localhost:3000/reset-password/the-token' })

test('a mail outlasts a mail server that is away, and the database has no word of it', async () => {
  const database = await createTestDatabase()
  const owner = new pg.Client({ connectionString: database.url })
  await owner.connect()
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  const queue = await openJobQueue(database.apiUrl, { onDone: () => undefined, onError: (error) => log(String(error)) })
  const office = await openPostOffice('word')
  try {
    const send = queueMails({ secret, log, keep: (sealed) => queue.sendMail(sealed) })
    expect(await send(mail)).toBe(true)
    const { rows } = await owner.query<{ text: string }>(
      `select data::text as text from pgboss.job where name = 'mail'`,
    )
    expect(rows).toHaveLength(1)
    expect(rows[0]?.text).not.toMatch(/the-token|new@example/)
    // At first nobody listens at the server's address.
    const absent = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => absent.once('listening', resolve))
    const { port } = absent.address() as { port: number }
    await new Promise((resolve) => absent.close(resolve))
    const servers = [`smtp://127.0.0.1:${port}`, office.url]
    await queue.deliverMails((sealed) =>
      deliverQueued(sealed, { secret, send: createMailer({ smtpUrl: servers.shift() ?? null, from, log }) }),
    )
    await expect.poll(() => lines).toHaveLength(1)
    await vi.waitFor(
      async () => {
        // The pause before the next try is over.
        await owner.query(`update pgboss.job set start_after = now() where state = 'retry'`)
        expect(office.texts).toHaveLength(1)
      },
      { timeout: 300_000, interval: 500 },
    )
    expect(office.texts[0]).toContain('/reset-password/the-token')
    expect(lines[0]).not.toMatch(/the-token/)
  } finally {
    await queue.stop()
    await office.close()
    await owner.end()
    await database.drop()
  }
})

test('a mail of another secret is not opened, and a queue that is away refuses without an error', async () => {
  const kept: string[] = []
  const keep = async (sealed: string) => void kept.push(sealed)
  await queueMails({ secret, keep, log: () => undefined })(mail)
  const send = async () => true
  await expect(deliverQueued(kept[0] ?? '', { secret: `${secret}!`, send })).rejects.toThrow()
  const lines: string[] = []
  const away = queueMails({ secret, keep: () => Promise.reject(new Error('away')), log: (line) => lines.push(line) })
  expect(await away(mail)).toBe(false)
  expect(lines).toEqual(['mail not queued (away)'])
})
