import { chmodSync, rmSync } from 'node:fs'
import net from 'node:net'
import { pipeline } from 'node:stream'

const connectionsMax = 64

/**
 * Passes connections on, from a port or a socket file to another. A socket file is reached from every network
 * namespace, so that two of these are a way from one namespace to another without any address of the machine.
 * @param {net.ListenOptions} from
 * @param {net.NetConnectOpts} to
 * @returns {Promise<net.Server>}
 */
export function relay(from, to) {
  const server = net.createServer({ allowHalfOpen: true }, (incoming) => {
    const outgoing = net.connect({ ...to, allowHalfOpen: true })
    // A connection that breaks at one end is closed at the other; the client sees a closed connection and retries.
    pipeline(incoming, outgoing, () => {})
    pipeline(outgoing, incoming, () => {})
  })
  server.maxConnections = connectionsMax
  if (from.path) rmSync(from.path, { force: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(from, () => {
      if (from.path) chmodSync(from.path, 0o600)
      resolve(server)
    })
  })
}
