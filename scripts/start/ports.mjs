import dgram from 'node:dgram'
import http from 'node:http'
import net from 'node:net'
import { UserError } from '../lib/fail.mjs'
import { must } from '../lib/run.mjs'

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

/** Returns true if the address answers with a status below 500. */
export function answers(url) {
  return new Promise((resolve) => {
    const request = http.get(url, { timeout: 2000 }, (response) => {
      response.resume()
      resolve(response.statusCode < 500)
    })
    request.once('timeout', () => request.destroy())
    request.once('error', () => resolve(false))
  })
}

/** Arguments of ss (iproute2) that list the listeners of a port. */
export const listenersOf = (protocol, port) => ['-Hnp', protocol === 'tcp' ? '-tl' : '-ul', `sport = :${port}`]

/**
 * Ends with one sentence when a port of an address is taken, by whom where that can be known.
 * @param {string} ip
 * @param {string} device the interface that has the address: who listens at another one only is in nobody's way
 * @param {{ what: string, port: number, protocol: 'tcp' | 'udp' }[]} wanted
 * @param {(port: number, holder: string) => string} advice the sentence's second half
 */
export async function requireFreeAt(ip, device, wanted, advice) {
  for (const { what, port, protocol } of wanted) {
    const listed = await must('Asking who listens', 'ss', listenersOf(protocol, port))
    for (const line of listed.trim().split('\n')) {
      const local = line.trim().split(/\s+/)[3] ?? ''
      const [address, bound = device] = local.slice(0, local.lastIndexOf(':')).split('%')
      if (!['0.0.0.0', '*', '[::]', ip].includes(address) || bound !== device) continue
      const holder = line.match(/users:\(\("([^"]+)",pid=(\d+)/)
      const who = holder ? `${holder[1]} (process ${holder[2]})` : 'another program'
      throw new UserError(`${protocol.toUpperCase()} port ${port} for ${what} is in use: ${advice(port, who)}`)
    }
  }
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
