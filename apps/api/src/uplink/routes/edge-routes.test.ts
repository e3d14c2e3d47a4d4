import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { brotliCompressSync, gunzip, gzipSync } from 'node:zlib'
import { reportBatchRatioMax, reportBatchSizeMax, uplinkVersionsAccepted } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { createTenant, makeJoinToken } from '../../../test/test-tenant.ts'

let api: TestApi
let edge: EdgeClient

beforeAll(async () => {
  api = await startTestApi()
})
beforeEach(async () => {
  const tenant = await createTenant(api, `own-${randomUUID()}`)
  edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
})
afterAll(() => api.close())

const path = '/edge/v1/reports'
const send = (body: Uint8Array, encoding = 'gzip') =>
  edge.send({
    method: 'POST',
    path,
    body: Uint8Array.from(body),
    headers: { 'content-encoding': encoding },
  })
const batchOf = (fromSeq: number, count = 1) => {
  const boots = Array.from({ length: count }, () => bootWith({ id: randomUUID(), mac: '02:bf:00:00:00:01' }))
  return JSON.stringify({ bootEpoch: 1, fromSeq, reports: bootReports(fromSeq, boots) })
}
const bootCount = () => api.db.boot.count({ where: { edgeId: edge.edgeId } })

describe('a batch of reports', () => {
  test('is taken as gzip, and once, also when it comes again as it is', async () => {
    const batch = batchOf(1, 100)
    const acked = { status: 200, body: { bootEpoch: 1, ackedSeq: 100 } }
    expect(await send(gzipSync(batch))).toEqual(acked)
    expect(await edge.send({ method: 'POST', path, body: batch })).toEqual(acked)
    expect(await bootCount()).toBe(100)
  })

  test.each(
    Array.from(
      { length: uplinkVersionsAccepted.newest - uplinkVersionsAccepted.oldest + 1 },
      (_, index) => uplinkVersionsAccepted.oldest + index,
    ),
  )('is taken as it is from an edge of version %i', async (version) => {
    edge.uplinkVersion = version === 1 ? null : version
    expect(await edge.send({ method: 'POST', path, body: batchOf(1) })).toMatchObject({ status: 200 })
    expect(await edge.send({ method: 'POST', path, body: batchOf(2) })).toMatchObject({ status: 200 })
    expect(await bootCount()).toBe(2)
  })

  test('may be compressed, every answer says, refusals too', async () => {
    const answers = await Promise.all([
      fetch(`${api.url}${path}`, {
        method: 'POST',
        body: batchOf(1),
        headers: edge.signatureOf('POST', path),
      }),
      fetch(`${api.url}${path}`, { method: 'POST', body: '{}' }),
    ])
    for (const answer of answers) {
      expect(answer.status).toBe(401)
      expect(answer.headers.get('accept-encoding')).toBe('gzip')
    }
  })
})

describe('what is no batch in gzip', () => {
  const padded = (size: number) => batchOf(1).padEnd(size)

  test('is refused in another coding, and the answer says which are taken', async () => {
    expect(await send(brotliCompressSync(batchOf(1)), 'br')).toMatchObject({
      status: 415,
      body: { code: 'unsupported_media_type' },
    })
    expect(await bootCount()).toBe(0)
  })

  test('is refused when it is cut short, or no gzip at all', async () => {
    const whole = gzipSync(batchOf(1))
    for (const body of [whole.subarray(0, -9), Buffer.from(batchOf(1)), Buffer.alloc(0)])
      expect(await send(body)).toMatchObject({ status: 400, body: { code: 'invalid_body' } })
    expect(await bootCount()).toBe(0)
  })

  test('is refused when it grows beyond what a batch may have, or by more than a batch does', async () => {
    const tooLarge = { status: 413, body: { code: 'too_large' } }
    const noise = Buffer.from(Array.from({ length: reportBatchSizeMax / 64 }, () => randomUUID()).join(''))
    const large = gzipSync(Buffer.concat([Buffer.from(batchOf(1).padEnd(reportBatchSizeMax)), noise]))
    expect(large.length).toBeGreaterThan((reportBatchSizeMax + noise.length) / reportBatchRatioMax)
    expect(await send(large)).toMatchObject(tooLarge)
    const dense = gzipSync(padded(reportBatchSizeMax))
    expect(dense.length).toBeLessThan(reportBatchSizeMax / reportBatchRatioMax)
    expect(await send(dense)).toMatchObject(tooLarge)
    expect(await bootCount()).toBe(0)
  })

  test('is not unzipped for a wrong signature, and a bomb costs a small part of what unzipping it would', async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20))
    expect(bomb.length).toBeLessThan(reportBatchSizeMax)
    // The least of three: what else this process does meanwhile counts, too.
    const costOf = async (work: () => Promise<unknown>) => {
      const costs: number[] = []
      for (let round = 0; round < 3; round++) {
        const before = process.cpuUsage()
        await work()
        const { user, system } = process.cpuUsage(before)
        costs.push(user + system)
      }
      return Math.min(...costs)
    }
    const whole = await costOf(() => promisify(gunzip)(bomb))
    const refused = await costOf(async () => {
      for (let index = 0; index < 4; index++) expect((await send(bomb)).status).toBe(413)
    })
    // Four of them, with all that a request costs besides.
    expect(refused).toBeLessThan(whole)
    const unsigned = { 'content-encoding': 'gzip', ...edge.signatureOf('POST', '/another/path') }
    const answer = await fetch(`${api.url}${path}`, { method: 'POST', body: bomb, headers: unsigned })
    expect(answer.status).toBe(401)
  })
})

describe('batches whose bodies do not come', () => {
  const sockets: Socket[] = []
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })

  /** Sends the head of a batch and one byte of its body; resolves when the API has taken the connection. */
  async function begin(url: string, headers: Record<string, string>): Promise<Socket> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    sockets.push(socket)
    const lines = Object.entries({ ...headers, 'content-length': '400000' }).map(([name, value]) => `${name}: ${value}`)
    await once(socket, 'connect')
    socket.write(`POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\n${lines.join('\r\n')}\r\n\r\n{`)
    return socket
  }
  const answered = async (socket: Socket) => String((await once(socket, 'data'))[0]).split('\r\n')[0]

  test('take no place from edges, whoever sends them', async () => {
    const strangers = await Promise.all(
      Array.from({ length: 150 }, (_, index) =>
        begin(api.url, index % 2 ? {} : { ...edge.signatureOf('POST', path), 'bootfarm-edge': randomUUID() }),
      ),
    )
    const lines = await Promise.all(strangers.map(answered))
    expect(new Set(lines)).toEqual(new Set(['HTTP/1.1 401 Unauthorized']))
    // Places of this edge alone.
    const inItsName = await Promise.all([1, 2, 3].map(() => begin(api.url, edge.signatureOf('POST', path))))
    expect(await Promise.any(inItsName.map(answered))).toBe('HTTP/1.1 503 Service Unavailable')
    const other = await EdgeClient.enrolled(api.url, await makeJoinToken(api, await createTenant(api, randomUUID())))
    expect(await other.send({ method: 'POST', path, body: batchOf(1) })).toMatchObject({ status: 200 })
  })

  test('end after the limit', async () => {
    const hasty = await startTestApi({ change: (options) => ({ ...options, requestTimeoutMs: 50 }) })
    try {
      const own = await EdgeClient.enrolled(
        hasty.url,
        await makeJoinToken(hasty, await createTenant(hasty, randomUUID())),
      )
      const socket = await begin(hasty.url, own.signatureOf('POST', path))
      expect(await answered(socket)).toMatch(/^HTTP\/1\.1 4\d\d/)
      await once(socket, 'close')
      expect(await own.send({ method: 'POST', path, body: batchOf(1) })).toMatchObject({ status: 200 })
    } finally {
      await hasty.close()
    }
  })
})
