import { createHash } from 'node:crypto'
import net from 'node:net'
import { UserError } from '../lib/fail.mjs'

/**
 * Allows one `npm start` per data directory. The lock is a socket in Linux's abstract namespace: the kernel frees it
 * with the process, so kill -9 leaves nothing stale.
 */
export function lockDataDirectory(data) {
  const name = `\0bootfarm-start-${createHash('sha256').update(data).digest('hex').slice(0, 32)}`
  return new Promise((resolve, reject) => {
    const server = net.createServer((socket) => socket.destroy())
    server.once('error', () =>
      reject(
        new UserError(
          `Bootfarm is already running with the data directory ${data}; stop that one, or choose another with --data.`,
        ),
      ),
    )
    server.listen(name, () => {
      server.unref()
      resolve()
    })
  })
}
