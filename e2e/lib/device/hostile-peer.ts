import { randomBytes } from 'node:crypto'
import dgram from 'node:dgram'
import http from 'node:http'
import type { RunningBoot } from './working-devices.ts'

/**
 * A program: somebody in the network who knows each device's MAC address, its boot's handle and the HELLO that opened
 * its session, and sends each kind of request in turn. Its last line is the account of what was answered.
 */

export interface HostileAccount {
  sent: number
  /** Statuses of HTTP, by kind of request. */
  statuses: Record<string, Record<string, number>>
  /** Types of the stream's packets that came. */
  streamTypes: Record<string, number>
}

const [, , edge = '', count = '0', known = '[]', peerSender = ''] = process.argv
const boots = JSON.parse(known) as RunningBoot[]
const ports = { dhcp: 67, http: 6980, stream: 6910, peer: 6911, pxe: 4011 }
const [cookieType, cookieAt, cookieSize] = [2, 32, 32]
const account: HostileAccount = { sent: 0, statuses: {}, streamTypes: {} }
const socket = dgram.createSocket('udp4')
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
/** Recorded HELLOs by their nonce: a copy gets a cookie for this address, and is sent again with it. */
const hellos = new Map(boots.map(({ hello }) => [hello.slice(32, 64), Buffer.from(hello, 'hex')]))

socket.on('message', (bytes, { port }) => {
  if (port !== ports.stream) return
  const type = bytes.readUInt8(1)
  account.streamTypes[type] = (account.streamTypes[type] ?? 0) + 1
  const hello = type === cookieType ? hellos.get(bytes.toString('hex', 16, 32)) : undefined
  if (!hello) return
  const copy = Buffer.from(hello)
  bytes.copy(copy, cookieAt, 32, 64)
  socket.send(copy, ports.stream, edge)
})

function ask(kind: string, method: 'GET' | 'POST', path: string, body = ''): Promise<void> {
  return new Promise((resolve) => {
    const request = http.request({ host: edge, port: ports.http, method, path, agent }, (answer) => {
      const status = String(answer.statusCode)
      const statuses = account.statuses[kind] ?? {}
      account.statuses[kind] = { ...statuses, [status]: (statuses[status] ?? 0) + 1 }
      answer.resume()
      answer.on('close', resolve)
    })
    // A connection that the edge cuts is no answer.
    request.on('error', () => resolve())
    request.end(body)
  })
}

const send = (port: number, bytes: Buffer) =>
  new Promise<void>((resolve) => socket.send(bytes, port, edge, () => resolve()))

/** DISCOVER (1) or REQUEST (3) of a firmware with this MAC address. */
function dhcp(type: number, mac: string): Buffer {
  const packet = Buffer.alloc(240)
  packet.set([1, 1, 6])
  randomBytes(4).copy(packet, 4)
  Buffer.from(mac.replaceAll(':', ''), 'hex').copy(packet, 28)
  packet.writeUInt32BE(0x63825363, 236)
  const server = edge.split('.').map(Number)
  const request = type === 3 ? [54, 4, ...server, 50, 4, ...server.slice(0, 3), 77] : []
  return Buffer.concat([
    packet,
    Buffer.from([53, 1, type, ...request, 60, 9, ...Buffer.from('PXEClient'), 93, 2, 0, 0, 94, 3, 1, 2, 1, 255]),
  ])
}

/** A message of another edge that claims a device (PEERS.md), with a tag that only chance makes right. */
function forgedClaim(mac: string): Buffer {
  const message = Buffer.alloc(88)
  message.write('BFPE')
  message.set([1, 2, 0, 32], 4)
  Buffer.from(peerSender.replaceAll('-', ''), 'hex').copy(message, 8)
  message.writeBigUInt64BE(9n, 24)
  message.writeBigUInt64BE(BigInt(account.sent), 32)
  randomBytes(16).copy(message, 40)
  Buffer.from(mac.replaceAll(':', ''), 'hex').copy(message, 56)
  message.set([2, 2], 62)
  randomBytes(16).copy(message, 72)
  return message
}

const invented = () => `02:aa:${randomBytes(4).toString('hex').match(/../g)?.join(':')}`

const kinds: ((boot: RunningBoot) => Promise<void>)[] = [
  ({ mac }) => ask('script by MAC address', 'GET', `/m/${mac}/boot.ipxe`),
  ({ path }) => ask('script by handle', 'GET', `${path}/boot.ipxe`),
  ({ path }) => ask('disk', 'GET', `${path}/disk`),
  ({ path }) => ask('failed', 'POST', `${path}/failed`, 'no_root it is gone'),
  ({ path }) => ask('ready', 'POST', `${path}/ready`),
  () => ask('made-up MAC address', 'GET', `/m/${invented()}/boot.ipxe`),
  ({ mac }) => send(ports.dhcp, dhcp(1, mac)),
  ({ mac }) => send(ports.dhcp, dhcp(3, mac)),
  ({ mac }) => send(ports.pxe, dhcp(1, mac)),
  ({ mac }) => send(ports.pxe, dhcp(3, mac)),
  () => send(ports.dhcp, dhcp(1, invented())),
  ({ mac }) => send(ports.peer, forgedClaim(mac)),
  ({ hello }) => {
    const copy = Buffer.from(hello, 'hex')
    copy.fill(0, cookieAt, cookieAt + cookieSize)
    return send(ports.stream, copy)
  },
]

for (let turn = 0; turn < Number(count) / kinds.length; turn += 1) {
  const boot = boots[turn % boots.length]
  if (!boot) throw new Error('no boots are known')
  for (const kind of kinds) await kind(boot)
  account.sent += kinds.length
}
process.stdout.write(`account ${JSON.stringify(account)}\n`)
process.exit(0)
