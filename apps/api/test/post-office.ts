import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export interface PostOffice {
  url: string
  password: string
  /** The mailed texts, oldest first. */
  texts: string[]
  close(): Promise<void>
}

/** A mail server that wants a name and a password. */
export async function openPostOffice(password: string): Promise<PostOffice> {
  const texts: string[] = []
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth: (auth, _session, done) =>
      auth.password === password ? done(null, { user: auth.username }) : done(new Error('no such account')),
    onData(stream, _session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        texts.push(text.replace(/=\r\n/g, '').replace(/=3D/g, '='))
        done()
      })
    },
  })
  const listening = server.listen(0, '127.0.0.1')
  await new Promise((resolve) => listening.once('listening', resolve))
  const { port } = listening.address() as AddressInfo
  return {
    texts,
    password,
    url: `smtp://boot:${password}@127.0.0.1:${port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
