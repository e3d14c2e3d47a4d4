import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { differencePieceSize, uplinkVersion } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Objects } from '../src/difference/objects.ts'
import { type S3Settings, S3Store } from '../src/difference/s3-store.ts'
import type { EdgeClient } from '../test/edge-client.ts'
import { startTestApi, type TestApi } from '../test/test-api.ts'
import { TestSite } from '../test/test-site.ts'
import { bucket, FaultyProxy, S3Gateway } from './s3-gateway.ts'

// Versity's S3 gateway, and a proxy before it that fails in the ways that object stores and proxies do.

const program = process.env.BOOTFARM_S3_GATEWAY ?? ''
const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-s3-'))
/** Quick enough that a store that does not answer is no long wait, slow enough for a busy machine. */
const limits = { operationMs: 3_000, attempts: 2 }
const troubles: string[] = []
let gateway: S3Gateway
let proxy: FaultyProxy
let store: S3Store
let api: TestApi
let site: TestSite
let sender: EdgeClient
let round = 0

const settings = (more: Partial<S3Settings> = {}): S3Settings =>
  Object.assign(
    {
      endpoint: proxy.url,
      region: 'us-east-1',
      bucket,
      prefix: 'farm/',
      isPathStyle: true,
      keys: gateway.keys,
      limits,
    },
    more,
  )

beforeAll(async () => {
  gateway = await S3Gateway.start(program, path.join(scratch, 'gateway'))
  proxy = await FaultyProxy.start(gateway)
  store = new S3Store(settings())
  const onTrouble = (operation: string) => void troubles.push(operation)
  const objects = new Objects({ store, organizationBytesMax: 1 << 30, onTrouble })
  api = await startTestApi({ change: (options) => Object.assign(options, { objects }) })
})
beforeEach(async () => {
  proxy.fault = () => null
  troubles.length = 0
  round += 1
  site = await TestSite.open(api, `s3-${round}`, 'admin')
  sender = site.edge
})
afterAll(async () => {
  await api?.close()
  await proxy?.close()
  await gateway?.kill()
  rmSync(scratch, { recursive: true })
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

/** Three pieces that an edge is to send, and another edge is to fetch. */
class Sent {
  readonly file = randomBytes(2 * differencePieceSize + 1000)
  readonly pieces = [0, 1, 2].map((index) =>
    Uint8Array.from(this.file.subarray(index * differencePieceSize, (index + 1) * differencePieceSize)),
  )
  readonly list = Uint8Array.from(Buffer.concat(this.pieces.map(sha256)))
  readonly id: string
  readonly fetcher: EdgeClient

  private constructor(id: string, fetcher: EdgeClient) {
    this.id = id
    this.fetcher = fetcher
  }

  static async make(): Promise<Sent> {
    const { organizationId, vdiskId, versionId } = site.tenant
    const now = api.clock.read()
    const { id } = await api.db.difference.create({
      data: { organizationId, vdiskId, versionId, createdAt: now, neededAt: now },
    })
    const fetcher = await site.enrolEdge()
    const job = { organizationId, vdiskId, versionId, differenceId: id, askedByName: 'A', askedAt: now }
    await api.db.storeJob.createMany({
      data: [
        { ...job, kind: 'pack', edgeId: sender.edgeId, toControlPlane: true },
        { ...job, kind: 'fetch', edgeId: fetcher.edgeId, fromControlPlane: true },
      ],
    })
    return new Sent(id, fetcher)
  }

  get path(): string {
    return `/edge/v1/differences/${this.id}`
  }

  putList() {
    const path = `${this.path}/list?sizeBytes=${this.file.length}`
    return sender.send({ method: 'PUT', path, body: this.list })
  }

  put(index: number) {
    return sender.send({ method: 'PUT', path: `${this.path}/pieces/${index}`, body: this.pieces[index] ?? this.list })
  }

  async missing(): Promise<unknown> {
    return (await sender.send({ method: 'GET', path: `${this.path}/missing` })).body?.missing
  }

  async sendAll(): Promise<void> {
    expect((await this.putList()).status).toBe(204)
    for (const index of [0, 1, 2]) expect((await this.put(index)).status).toBe(204)
    expect(await this.missing()).toEqual([])
  }

  async get(index: number) {
    const path = `${this.path}/pieces/${index}`
    const headers = { 'bootfarm-uplink': String(uplinkVersion), ...this.fetcher.signatureOf('GET', path) }
    const answer = await fetch(`${api.url}${path}`, { headers })
    const bytes = Buffer.from(await answer.arrayBuffer())
    const isRight = bytes.equals(this.pieces[index] ?? this.list)
    return { status: answer.status, isRight, retryAfter: answer.headers.get('retry-after'), text: bytes.toString() }
  }

  async expectAll(): Promise<void> {
    for (const index of [0, 1, 2]) expect(await this.get(index)).toMatchObject({ status: 200, isRight: true })
  }
}

const isPiece = (path: string) => /\/\d+(\?|$)/.test(path)

test('a bucket keeps objects like a directory, more than a page of them, and touches nothing else in it', async () => {
  const beside = new S3Store(settings({ prefix: '' }))
  const [organizationId, differenceId, other] = [randomUUID(), randomUUID(), randomUUID()]
  const key = { organizationId, differenceId, name: '0' }
  expect(await store.get(key)).toBeNull()
  await store.put(key, Buffer.from('one'))
  await store.put(key, Buffer.from('two'))
  expect(Buffer.from((await store.get(key)) ?? []).toString()).toBe('two')
  expect(await beside.get(key)).toBeNull()
  const names = Array.from({ length: 1_005 }, (_, index) => String(index))
  const queue = [...names]
  const fill = async () => {
    for (let name = queue.pop(); name !== undefined; name = queue.pop())
      await store.put({ organizationId, differenceId, name }, new Uint8Array())
  }
  await Promise.all(Array.from({ length: 16 }, fill))
  expect((await store.names(key)).sort()).toEqual(names.sort())
  await store.put({ organizationId, differenceId: other, name: 'list' }, Buffer.from('x'))
  await beside.put({ organizationId: 'farm/notes', differenceId: 'of', name: 'others' }, Buffer.from('x'))
  expect(await store.organizationIds()).toEqual([organizationId])
  expect((await store.differenceIds(organizationId)).sort()).toEqual([differenceId, other].sort())
  await store.remove(key)
  await store.remove(key)
  expect(await store.get(key)).toBeNull()
  await store.delete(key)
  expect([await store.names(key), await store.differenceIds(organizationId)]).toEqual([[], [other]])
  expect(await beside.names({ organizationId: 'farm/notes', differenceId: 'of' })).toEqual(['others'])
})

test('a difference goes through the bucket to another edge, and lost pieces are sent again', async () => {
  const sent = await Sent.make()
  await sent.sendAll()
  expect(await sent.get(0)).toMatchObject({ status: 200, isRight: true })
  await store.remove({ organizationId: site.tenant.organizationId, differenceId: sent.id, name: '1' })
  expect(await sent.get(1)).toMatchObject({ status: 404, text: expect.stringContaining('does not have piece 1') })
  expect(await api.db.difference.findFirst({ where: { id: sent.id } })).toMatchObject({ storedAt: null })
  expect(await sent.missing()).toEqual([1])
  expect((await sent.put(1)).status).toBe(204)
  expect(await sent.missing()).toEqual([])
  await sent.expectAll()
  expect(troubles).toEqual([])
})

test.each([
  ['error', 'it answered with HTTP status 500'],
  ['silence', 'it did not answer in time'],
  ['slow', 'it did not answer in time'],
  ['cut', 'it ended the connection'],
] as const)(
  'a store with the fault %s is a clear error with a pause, nothing is lost, and it goes on',
  async (fault, reason) => {
    const sent = await Sent.make()
    expect((await sent.putList()).status).toBe(204)
    expect((await sent.put(0)).status).toBe(204)
    if (fault === 'error' || fault === 'silence') {
      proxy.fault = ({ method }) => (method === 'PUT' ? fault : null)
      expect(await sent.put(1)).toMatchObject({
        status: 503,
        body: {
          detail: `The object store of the control plane could not take piece 1: ${reason}. It is tried again.`,
        },
      })
      proxy.fault = () => fault
      expect(await sender.send({ method: 'GET', path: `${sent.path}/missing` })).toMatchObject({ status: 503 })
      expect(troubles).toEqual(['put', 'list'])
    }
    proxy.fault = () => null
    expect(await sent.missing()).toEqual([1, 2])
    for (const index of [1, 2]) expect((await sent.put(index)).status).toBe(204)
    expect(await sent.missing()).toEqual([])
    proxy.fault = ({ method, path }) => (method === 'GET' && isPiece(path) ? fault : null)
    expect(await sent.get(1)).toMatchObject({
      status: 503,
      retryAfter: '10',
      text: expect.stringContaining(`could not send piece 1: ${reason}. It is tried again.`),
    })
    expect(await api.db.difference.findFirst({ where: { id: sent.id } })).toMatchObject({ storedAt: expect.any(Date) })
    proxy.fault = () => null
    await sent.expectAll()
  },
)

test('bytes that come out wrong once are read again, and always wrong ones are given to nobody but sent again', async () => {
  const sent = await Sent.make()
  await sent.sendAll()
  let isFirst = true
  proxy.fault = ({ method, path }) => {
    if (method !== 'GET' || !isPiece(path) || !isFirst) return null
    isFirst = false
    return 'other_bytes'
  }
  expect(await sent.get(0)).toMatchObject({ status: 200, isRight: true })
  expect(troubles).toEqual(['get'])
  proxy.fault = ({ method, path }) => (method === 'GET' && isPiece(path) ? 'other_bytes' : null)
  expect(await sent.get(1)).toMatchObject({
    status: 404,
    text: expect.stringContaining('has other bytes of piece 1 than were sent to it. An edge sends it again.'),
  })
  proxy.fault = () => null
  expect(await sent.missing()).toEqual([1])
  expect((await sent.put(1)).status).toBe(204)
  expect(await sent.missing()).toEqual([])
  await sent.expectAll()
})

test('a proxy that changes what is sent is found by the signature', async () => {
  const sent = await Sent.make()
  expect((await sent.putList()).status).toBe(204)
  const key = { organizationId: site.tenant.organizationId, differenceId: sent.id, name: '7' }
  const garbled = await FaultyProxy.start(gateway)
  garbled.garblesBodies = true
  const through = new S3Store(settings({ endpoint: garbled.url }))
  await expect(through.put(key, sent.pieces[0] ?? sent.list)).rejects.toThrow()
  expect(await store.get(key)).toBeNull()
  await garbled.close()
})

test('a gateway that is killed midway has what it has taken, and gets the rest', async () => {
  const sent = await Sent.make()
  expect((await sent.putList()).status).toBe(204)
  expect((await sent.put(0)).status).toBe(204)
  await gateway.kill()
  expect(await sent.put(1)).toMatchObject({
    status: 503,
    body: { detail: expect.stringMatching(/could not take piece 1: it (ended the connection|cannot be reached)/) },
  })
  await gateway.start()
  expect(await sent.missing()).toEqual([1, 2])
  for (const index of [1, 2]) expect((await sent.put(index)).status).toBe(204)
  expect(await sent.missing()).toEqual([])
  await gateway.kill()
  expect(await sent.get(2)).toMatchObject({ status: 503, retryAfter: '10' })
  await gateway.start()
  await sent.expectAll()
})

test.each([
  ['an unknown key', { keys: { accessKeyId: 'x', secretAccessKey: 'y' } }, 'it does not know the access key'],
  [
    'another secret',
    { keys: { accessKeyId: 'bootfarm', secretAccessKey: 'y' } },
    'the secret key is not the one of the access key',
  ],
  ['no such bucket', { bucket: 'absent' }, 'its bucket does not exist'],
  ['nobody there', { endpoint: 'http://127.0.0.1:1' }, 'it cannot be reached'],
])('%s is told by name', async (_what, more, reason) => {
  const objects = new Objects({ store: new S3Store(settings(more)), organizationBytesMax: 1 })
  const key = { organizationId: randomUUID(), differenceId: randomUUID() }
  await expect(objects.putList(key, { list: randomBytes(32), sizeBytes: 1 })).rejects.toMatchObject({
    code: 'unavailable',
    publicText: `The object store of the control plane could not take a list: ${reason}. It is tried again.`,
  })
})
