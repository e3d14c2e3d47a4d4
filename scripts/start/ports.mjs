import dgram from 'node:dgram'
import net from 'node:net'
import { UserError } from '../lib/fail.mjs'

/** @returns {Promise<string | null>} null where the port can be had, else the system's error code */
function tcpTrouble(port) {
  return new Promise((resolve) => {
    const server = net.createServer()
    server.once('error', (error) => resolve(error.code))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(null)))
  })
}

function udpTrouble(port) {
  return new Promise((resolve) => {
    const socket = dgram.createSocket('udp4')
    socket.once('error', (error) => {
      socket.close()
      resolve(error.code)
    })
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => socket.close(() => resolve(null)))
  })
}

/**
 * Ends with one sentence when a port is taken, before anything was started.
 * @param {{ what: string, port: number, protocol: 'tcp' | 'udp', option: string }[]} wanted
 */
export async function requireFreePorts(wanted) {
  for (const { what, port, protocol, option } of wanted) {
    const trouble = await (protocol === 'tcp' ? tcpTrouble(port) : udpTrouble(port))
    if (!trouble) continue
    const reason =
      trouble === 'EADDRINUSE'
        ? 'is already in use'
        : trouble === 'EACCES'
          ? 'needs more rights'
          : `cannot be used (${trouble})`
    throw new UserError(
      `${protocol.toUpperCase()} port ${port} for ${what} ${reason}; stop what uses it, or choose another with ${option}.`,
    )
  }
}
