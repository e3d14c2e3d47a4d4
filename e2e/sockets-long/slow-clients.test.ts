import { once } from 'node:events'
import net from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** How long a client has for a whole request head. */
const headLimitMs = 15_000
/** The limit of connections per address. */
const slowClients = 256
const scratch = scratchDirectory()
let ports: EdgePorts
let edge: RunningProcess

beforeAll(async () => {
  ports = await edgePorts()
  edge = await startLoopbackEdge(ports, serveArguments(makeBootFiles(scratch.path, 4096)))
})

afterAll(async () => {
  await edge.stop()
  scratch.remove()
})

test('clients that send their request heads byte by byte are cut off while others are served', async () => {
  const begin = performance.now()
  const sockets = await Promise.all(Array.from({ length: slowClients }, connect))
  const cutOff = Promise.all(sockets.map((socket) => once(socket, 'close')))
  const trickle = setInterval(() => {
    for (const socket of sockets) if (!socket.destroyed) socket.write('a')
  }, 500)
  let served = 0
  let isOpen = true
  void cutOff.then(() => {
    isOpen = false
  })
  while (isOpen) {
    const answer = await fetch(`http://${edgeAddress}:${ports.http}/healthz`)
    expect(await answer.text()).toBe('ok\n')
    served++
  }
  clearInterval(trickle)
  expect(performance.now() - begin, 'no sooner than an honest client needs').toBeGreaterThan(headLimitMs - 1_000)
  console.log(`${served} requests were answered meanwhile`)
  expect(served).toBeGreaterThan(slowClients)
})

async function connect(): Promise<net.Socket> {
  const socket = net.connect({ host: edgeAddress, port: ports.http, localAddress: '127.0.7.9' })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.resume()
  socket.write('GET /healthz HTTP/1.1\r\nX: ')
  return socket
}
