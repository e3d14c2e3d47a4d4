import { randomBytes } from 'node:crypto'
import dgram from 'node:dgram'
import http from 'node:http'
import net from 'node:net'
import { bootReport } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

const packetCount = 2_000
const connectionsAtOnce = 32
const reporterMac = '02:bf:00:00:0a:01'
const scratch = scratchDirectory()
let ports: EdgePorts
let edge: RunningProcess

beforeAll(async () => {
  ports = await edgePorts()
  edge = await startLoopbackEdge(ports, [...serveArguments(makeBootFiles(scratch.path, 4096)), '--json'])
})

afterAll(async () => {
  await edge.stop()
  scratch.remove()
})

/**
 * Sends every packet from one socket and counts the bytes of all answers; ends with a marker that the edge answers, or
 * after silence.
 */
async function bytesInAndOut(port: number, packets: Buffer[]): Promise<{ bytesIn: number; bytesOut: number }> {
  const socket = dgram.createSocket('udp4')
  let bytesOut = 0
  let lastAnswerAt = performance.now()
  socket.on('message', (message) => {
    bytesOut += message.length
    lastAnswerAt = performance.now()
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  let bytesIn = 0
  for (const packet of packets) {
    await new Promise<void>((resolve) => socket.send(packet, port, edgeAddress, () => resolve()))
    bytesIn += packet.length
  }
  const quietForMs = 300
  while (performance.now() - lastAnswerAt < quietForMs) await new Promise((resolve) => setTimeout(resolve, 50))
  socket.close()
  return { bytesIn, bytesOut }
}

/** A valid start with a broken rest, and plain noise; every length from 0 to that of a large packet. */
function hostile(valid: Buffer): Buffer[] {
  return Array.from({ length: packetCount }, (_, index) => {
    if (index % 3 === 0) return randomBytes(index % 1400)
    const packet = Buffer.from(valid)
    const bytes = randomBytes(8)
    for (const byte of bytes.subarray(0, 1 + (index % 6))) packet[(byte * 7 + index) % packet.length] = byte
    return index % 3 === 1 ? packet : packet.subarray(0, index % packet.length)
  })
}

function discover(): Buffer {
  const packet = Buffer.alloc(300)
  packet.set([1, 1, 6, 0, 1, 2, 3, 4])
  packet.set([2, 0xbf, 0, 0, 9, 9], 28)
  packet.set([99, 130, 83, 99, 53, 1, 1, 60, 9, ...Buffer.from('PXEClient'), 93, 2, 0, 0, 255], 236)
  return packet
}

/** RFC 1350 section 5 with one option of RFC 2348; all strings end with a zero byte. */
const readRequest = (name: string) =>
  Buffer.concat([Buffer.from([0, 1]), ...[name, 'octet', 'blksize', '1432'].map((text) => Buffer.from(`${text}\0`))])

function streamHello(): Buffer {
  const packet = Buffer.alloc(240)
  packet.set([0x20, 1])
  randomBytes(16).copy(packet, 16)
  return packet
}

/** A 16-byte header, then a REPORT without steps (packages/proto/STREAM.md). */
function streamReport(): Buffer {
  const packet = Buffer.alloc(60)
  packet.set([0x20, 11])
  randomBytes(12).copy(packet, 4)
  return packet
}

/** Collects the answer to these bytes on a separate connection until it is closed. */
function answerTo(bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(ports.http, edgeAddress, () => socket.end(bytes))
    let answer = ''
    socket.on('data', (data) => {
      answer += data.toString('latin1')
    })
    // A connection that is cut while it still sends ends in an error.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(answer))
  })
}

async function stillServes(): Promise<void> {
  const answer = await fetch(`http://${edgeAddress}:${ports.http}/healthz`)
  expect(answer.status).toBe(200)
  expect(edge.isRunning, edge.output).toBe(true)
}

describe('hostile packets', () => {
  test('the DHCP ports send at most as many bytes as they receive', async () => {
    for (const port of [ports.dhcp, ports.pxe]) {
      const { bytesIn, bytesOut } = await bytesInAndOut(port, hostile(discover()))
      expect(bytesOut).toBeLessThanOrEqual(bytesIn)
      await stillServes()
    }
  })

  test('the TFTP port sends at most as many bytes as it receives', async () => {
    const { bytesIn, bytesOut } = await bytesInAndOut(ports.tftp, hostile(readRequest('no-such-file-of-this-name')))
    expect(bytesOut).toBeLessThanOrEqual(bytesIn)
    await stillServes()
  })

  test('the stream port sends at most as many bytes as it receives', async () => {
    for (const packet of [streamHello(), streamReport()]) {
      const { bytesIn, bytesOut } = await bytesInAndOut(ports.stream, hostile(packet))
      expect(bytesOut).toBeLessThanOrEqual(bytesIn)
      await stillServes()
    }
  })

  test('broken reports by HTTP are answered or cut off, and none passes for another', async () => {
    const script = await (await fetch(`http://${edgeAddress}:${ports.http}/m/${reporterMac}/boot.ipxe`)).text()
    const path = new URL(script.match(/ bootfarm\.report=(\S+)/)?.[1] ?? '').pathname
    const body = 'no_root \x1b[2J"\\\0$x'
    const valid = `POST ${path}/failed HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const other = valid.replace(path, '/b/0123456789abcdef')
    const broken = hostile(Buffer.from(other))
    for (let first = 0; first < broken.length; first += connectionsAtOnce) {
      const answers = await Promise.all(broken.slice(first, first + connectionsAtOnce).map(answerTo))
      for (const answer of answers) expect(answer).toMatch(/^(HTTP\/1\.1 [1-5]\d\d |$)/)
    }
    // Broken DHCP packets start further boots, and end some.
    const printed = new RegExp(`^\\{.*"mac":"${reporterMac}".*"outcome".*$`, 'm')
    expect(edge.output, 'this boot has not ended by them').not.toMatch(printed)
    expect(await answerTo(Buffer.from(valid))).toMatch(/^HTTP\/1\.1 204 /)
    const { outcome } = bootReport.parse(JSON.parse((await edge.waitFor(printed))[0]))
    expect(outcome).toMatchObject({ cause: 'root_not_found', text: '?[2J"\\?$x' })
    await stillServes()
  })

  test('no path leads TFTP out of the published files', async () => {
    for (const name of [
      '../disk.raw',
      '/etc/passwd',
      'b/../../../etc/passwd',
      '..\\disk.raw',
      'boot-files/../disk.raw',
      './undionly.kpxe/..',
      'disk.raw',
    ]) {
      const answer = await firstAnswer(ports.tftp, readRequest(name))
      expect([name, answer.readUInt16BE(0)]).toEqual([name, 5])
      expect([1, 2]).toContain(answer.readUInt16BE(2))
    }
  })

  test('no path leads HTTP out of the published files', async () => {
    for (const path of [
      '/../../etc/passwd',
      '/b/0123456789abcdef/../../etc/passwd',
      '/%2e%2e/%2e%2e/etc/passwd',
      '/b/zzzz/kernel',
      '/disk.raw',
    ]) {
      const status = await statusOf(path)
      expect([path, status]).toEqual([path, status === 400 ? 400 : 404])
    }
  })
})

/** Returns the status of a GET whose path is sent unchanged (fetch would normalise it). */
function statusOf(path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: edgeAddress, port: ports.http, path }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    request.once('error', reject)
  })
}

function firstAnswer(port: number, packet: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket('udp4')
    const limit = setTimeout(() => {
      socket.close()
      reject(new Error('no answer within a minute'))
    }, 60_000)
    socket.once('message', (message) => {
      clearTimeout(limit)
      socket.close()
      resolve(message)
    })
    socket.send(packet, port, edgeAddress)
  })
}
