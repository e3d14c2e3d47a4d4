import { createHash } from 'node:crypto'
import net from 'node:net'

/**
 * One supervisor per directory. The lock is a socket in Linux's abstract namespace: the kernel frees it with the
 * process, so kill -9 leaves nothing stale.
 */
export function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const name = `\0bootfarm-postgres-${createHash('sha256').update(directory).digest('hex').slice(0, 32)}`
  return new Promise((resolve, reject) => {
    const server = net.createServer((socket) => socket.destroy())
    server.once('error', () => {
      reject(new Error(`PostgreSQL in ${directory} is in the hands of another process; stop that one first.`))
    })
    server.listen(name, () => {
      server.unref()
      resolve(() => new Promise((done) => server.close(() => done())))
    })
  })
}
