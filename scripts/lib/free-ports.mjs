import dgram from 'node:dgram'
import { readFileSync } from 'node:fs'
import net from 'node:net'

const blockSize = 64
const lowestPort = 10_240
const everywhere = '0.0.0.0'

/** The ports that this process may hand out, after its guard port; allocated when first needed. */
let block
let taken = 0

/**
 * Returns different ports, free for TCP and UDP, that no other test takes until this process ends: they lie below those
 * that the kernel gives to outgoing connections, and each process has its own block.
 * @param {number} count
 * @returns {Promise<number[]>}
 */
export async function freePorts(count) {
  block ??= guardedBlock()
  const first = await block
  const ports = []
  for (let tried = 0; ports.length < count && tried < blockSize - 1; tried += 1) {
    const port = first + 1 + (taken % (blockSize - 1))
    taken += 1
    if ((await canBindTcp(port)) && (await canBindUdp(port))) ports.push(port)
  }
  if (ports.length < count) throw new Error(`Fewer than ${count} of the ports after ${first} are free.`)
  return ports
}

/** The process that listens at a block's first port owns all of it. */
async function guardedBlock() {
  const blocks = Math.floor((lowestOutgoingPort() - lowestPort) / blockSize)
  for (let step = 0; step < blocks; step += 1) {
    const first = lowestPort + ((process.pid + step) % blocks) * blockSize
    const guard = await listen(first)
    if (!guard) continue
    guard.unref()
    return first
  }
  throw new Error(`No block of ${blockSize} ports from ${lowestPort} on is free.`)
}

function lowestOutgoingPort() {
  const [lowest] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/)
  return Number(lowest)
}

async function canBindTcp(port) {
  const server = await listen(port)
  if (!server) return false
  await new Promise((resolve) => server.close(resolve))
  return true
}

/** @returns {Promise<net.Server | undefined>} */
function listen(port) {
  return new Promise((resolve) => {
    const server = net.createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, everywhere, () => resolve(server))
  })
}

function canBindUdp(port) {
  return new Promise((resolve) => {
    const socket = dgram.createSocket('udp4')
    socket.once('error', () => resolve(false))
    socket.bind(port, everywhere, () => socket.close(() => resolve(true)))
  })
}
