import { createSocket } from 'node:dgram'
import { once } from 'node:events'

const typeA = 1
const nameError = 3

/**
 * Starts a name server on loopback (RFC 1035) that knows the IPv4 addresses of these hosts, and no other host; it never
 * answers for `silent.example`.
 */
export async function startNameServer(hosts: Record<string, string>) {
  const socket = createSocket('udp4')
  socket.on('message', (query, { address, port }) => {
    const { host, type, end } = questionOf(query)
    if (host === 'silent.example') return
    const known = hosts[host]
    const answers = known !== undefined && type === typeA ? [recordOf(known)] : []
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    // A response, recursion available.
    header.writeUInt16BE(0x8180 | (known === undefined ? nameError : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(answers.length, 6)
    socket.send(Buffer.concat([header, query.subarray(12, end), ...answers]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    servers: [`127.0.0.1:${socket.address().port}`],
    close: () => new Promise<void>((resolve) => socket.close(() => resolve())),
  }
}

function questionOf(query: Buffer): { host: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let size = query.readUInt8(at); size > 0; size = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + size))
    at += 1 + size
  }
  return { host: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** An A record whose name points at the question. */
function recordOf(address: string): Buffer {
  const head = Buffer.from([0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4])
  return Buffer.concat([head, Buffer.from(address.split('.').map(Number))])
}
