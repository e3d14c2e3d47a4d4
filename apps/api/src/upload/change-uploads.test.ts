import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { uplinkVersion } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { startTestApi } from '../../test/test-api.ts'
import { testOrigin } from '../../test/test-constants.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { StoreJobView } from '../store-job/schema.ts'
import type { VersionWithJobs } from '../vdisk/version-schema.ts'
import { dropOldUploads } from './drop-old-uploads.ts'
import { pieceType, type UploadView } from './schema.ts'

const site = useTestSite('image_manager')
const image = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7919) & 0xff))
const sha256 = createHash('sha256').update(image).digest('hex')
const dayMs = 86_400_000

const create = (more: object = {}) =>
  site().mutate<UploadView>('upload.create', {
    vdiskId: site().tenant.vdiskId,
    name: 'linux.raw',
    sizeBytes: image.length,
    ...more,
  })
const get = ({ id, vdiskId }: UploadView) => site().query<UploadView>('upload.get', { uploadId: id, vdiskId })
const pathOf = ({ id, vdiskId }: UploadView) => `/api/v1/vdisks/${vdiskId}/uploads/${id}/bytes`
const fileOf = ({ id }: UploadView) => path.join(site().api.uploadsDirectory, site().tenant.organizationId, id)

const sweep = () => {
  const { serverDb: db, clock, uploads } = site().api
  return dropOldUploads({ db, clock: clock.read, uploads })
}

async function expireIn({ id }: UploadView, days: number) {
  const { api, tenant } = site()
  await api.db.upload.update({
    where: { organizationId_id: { organizationId: tenant.organizationId, id } },
    data: { expiresAt: new Date(api.clock.now.getTime() + days * dayMs) },
  })
}

interface Sent {
  offset: number
  bytes: Uint8Array<ArrayBuffer>
  cookie?: string
  headers?: Record<string, string>
}

async function send(upload: UploadView, { offset, bytes, cookie = site().cookie, headers = {} }: Sent) {
  const answer = await fetch(`${site().api.url}${pathOf(upload)}`, {
    method: 'PATCH',
    headers: { cookie, origin: testOrigin, 'content-type': pieceType, 'upload-offset': String(offset), ...headers },
    body: bytes,
  })
  const text = await answer.text()
  return { status: answer.status, text, offset: answer.headers.get('upload-offset') }
}
const bytesOf = (from: number, to = image.length) => Uint8Array.from(image.subarray(from, to))

/** Announces `announced` bytes, sends those from `from` to `to`, and cuts the connection once they are stored. */
async function sendAndCut(
  upload: UploadView,
  { from, to, announced }: { from: number; to: number; announced: number },
) {
  const { hostname, port } = new URL(site().api.url)
  const socket = net.connect(Number(port), hostname)
  socket.on('error', () => undefined)
  const head = [
    `PATCH ${pathOf(upload)} HTTP/1.1`,
    `host: ${hostname}`,
    `cookie: ${site().cookie}`,
    `origin: ${testOrigin}`,
    `content-type: ${pieceType}`,
    `upload-offset: ${from}`,
    `content-length: ${announced}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  socket.write(image.subarray(from, to))
  while ((await get(upload)).receivedBytes < to) await new Promise((resolve) => setImmediate(resolve))
  return socket
}

test('an upload continues where it was cut, and is complete with the hash of all bytes', async () => {
  const upload = await create({ sha256 })
  expect(upload).toMatchObject({ receivedBytes: 0, isComplete: false, sha256: null, name: 'linux.raw' })
  for (const [from, to] of [
    [0, 70_000],
    [70_000, 150_001],
  ] as const) {
    const socket = await sendAndCut(upload, { from, to, announced: image.length - from })
    socket.destroy()
  }
  const head = await fetch(`${site().api.url}${pathOf(upload)}`, { method: 'HEAD', headers: { cookie: site().cookie } })
  expect([head.status, head.headers.get('upload-offset'), head.headers.get('upload-length')]).toEqual([
    200,
    '150001',
    String(image.length),
  ])
  expect(head.headers.get('cache-control')).toBe('no-store')
  expect(await send(upload, { offset: 150_001, bytes: bytesOf(150_001, 200_000) })).toMatchObject({ status: 204 })
  expect(await send(upload, { offset: 200_000, bytes: bytesOf(200_000) })).toMatchObject({
    status: 204,
    offset: String(image.length),
  })
  expect(await get(upload)).toMatchObject({ isComplete: true, sha256, receivedBytes: image.length })
  expect(readFileSync(fileOf(upload)).equals(image)).toBe(true)
})

test('a sender that lost the last answer completes the upload with a piece without bytes', async () => {
  const upload = await create()
  // The process ended between the last byte and the row.
  mkdirSync(path.dirname(fileOf(upload)), { recursive: true })
  writeFileSync(fileOf(upload), image)
  expect(await get(upload)).toMatchObject({ isComplete: false, receivedBytes: image.length })
  const sent = await send(upload, { offset: image.length, bytes: Uint8Array.of() })
  expect(sent).toMatchObject({ status: 204, offset: String(image.length) })
  expect(await get(upload)).toMatchObject({ isComplete: true, sha256 })
})

test('a newer piece ends one whose sender has lost its connection', async () => {
  const upload = await create()
  const silent = await sendAndCut(upload, { from: 0, to: 50_000, announced: image.length })
  const isEnded = new Promise((resolve) => silent.once('close', resolve))
  expect(await send(upload, { offset: 50_000, bytes: bytesOf(50_000) })).toMatchObject({ status: 204 })
  await isEnded
  expect(await get(upload)).toMatchObject({ isComplete: true, sha256 })
})

test('another process continues an upload, and computes the hash of what it did not see', async () => {
  const upload = await create()
  await send(upload, { offset: 0, bytes: bytesOf(0, 100_000) })
  const beside = await startTestApi({ beside: site().api })
  const answer = await fetch(`${beside.url}${pathOf(upload)}`, {
    method: 'PATCH',
    headers: { cookie: site().cookie, origin: testOrigin, 'content-type': pieceType, 'upload-offset': '100000' },
    body: bytesOf(100_000),
  })
  expect(answer.status).toBe(204)
  await beside.close()
  expect(await get(upload)).toMatchObject({ isComplete: true, sha256 })
})

test('pieces elsewhere, too long ones and other bytes than announced are refused', async () => {
  const upload = await create({ sha256: sha256.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) })
  await send(upload, { offset: 0, bytes: bytesOf(0, 10) })
  const wrong = await send(upload, { offset: 11, bytes: bytesOf(11, 20) })
  expect([wrong.status, JSON.parse(wrong.text)]).toEqual([
    409,
    expect.objectContaining({ detail: 'The upload continues at byte 10, not 11.', receivedBytes: 10 }),
  ])
  const long = await send(upload, { offset: 10, bytes: Uint8Array.from(image) })
  expect([long.status, long.text]).toEqual([413, expect.stringContaining('announced with 300000 bytes')])
  const { receivedBytes } = await get(upload)
  const other = await send(upload, { offset: receivedBytes, bytes: bytesOf(receivedBytes) })
  expect([other.status, other.text]).toEqual([409, expect.stringContaining('They were deleted: send the file again.')])
  expect(await get(upload)).toMatchObject({ receivedBytes: 0, isComplete: false })
})

test('only who may import sends bytes, from our own pages and within the organization', async () => {
  const upload = await create()
  const piece = { offset: 0, bytes: bytesOf(0, 10) }
  const viewer = await signInAs(site().api, site().tenant.organizationId, 'viewer')
  expect(await send(upload, { ...piece, cookie: viewer })).toMatchObject({ status: 403 })
  expect(await send(upload, { ...piece, cookie: '' })).toMatchObject({ status: 401 })
  expect(await send(upload, { ...piece, headers: { origin: 'https://elsewhere.example' } })).toMatchObject({
    status: 403,
  })
  expect(await send(upload, { ...piece, headers: { 'content-type': 'text/plain' } })).toMatchObject({ status: 415 })
  expect(await send(upload, { ...piece, headers: { 'upload-offset': '-1' } })).toMatchObject({ status: 400 })
  expect(await send({ ...upload, id: randomUUID() }, piece)).toMatchObject({ status: 404 })
  expect(await get(upload)).toMatchObject({ receivedBytes: 0 })
})

test('sizes are limited, and a deleted upload leaves nothing', async () => {
  const refused = async (more: object) =>
    (await site().tryMutation('upload.create', { vdiskId: site().tenant.vdiskId, name: 'a', ...more })).text
  expect(await refused({ sizeBytes: (8 << 20) + 1 })).toContain('An upload can have at most 8388608 bytes.')
  expect(await refused({ sizeBytes: 0 })).toContain('The file is empty.')
  for (let count = 0; count < 3; count++) await create({ sizeBytes: 8 << 20 })
  expect(await refused({ sizeBytes: 1 })).toContain('at most 25165824 bytes together')
  const { items } = await site().query<{ items: UploadView[] }>('upload.list', { vdiskId: site().tenant.vdiskId })
  const [one] = items
  if (!one) throw new Error('no upload')
  await send(one, { offset: 0, bytes: bytesOf(0, 10) })
  await site().mutate('upload.remove', { vdiskId: one.vdiskId, uploadId: one.id })
  expect(existsSync(fileOf(one))).toBe(false)
  expect(await send(one, { offset: 0, bytes: bytesOf(0, 10) })).toMatchObject({ status: 404 })
  await create({ sizeBytes: 1 })
})

test('an edge reads the ranges of an upload that it is to import, and what was imported is deleted', async () => {
  const upload = await create()
  const { edge, tenant, api } = site()
  const { vdiskId } = tenant
  const input = { vdiskId, edgeId: edge.edgeId, uploadId: upload.id }
  const refusedOf = async (more: object) => (await site().tryMutation('version.import', { ...input, ...more })).text
  expect(await refusedOf({})).toContain('The upload is not complete.')
  await send(upload, { offset: 0, bytes: bytesOf(0) })
  expect(await refusedOf({ sourcePath: 'imports/a.raw' })).toContain('Name one image')
  expect(await refusedOf({ uploadId: null })).toContain('Name one image')
  expect(await refusedOf({ uploadId: randomUUID() })).toContain('This upload does not exist')
  await edge.heartbeat({ storeJobKinds: ['import'] })
  expect(await refusedOf({})).toContain('cannot import uploads. Update it.')
  await edge.heartbeat({ storeJobKinds: ['import', 'import_upload'] })

  const range = (first: number, last: number) =>
    fetch(`${api.url}/edge/v1/uploads/${upload.id}`, {
      headers: {
        ...edge.signatureOf('GET', `/edge/v1/uploads/${upload.id}`),
        'bootfarm-uplink': String(uplinkVersion),
        range: `bytes=${first}-${last}`,
      },
    })
  expect((await range(0, 9)).status).toBe(404)
  expect(await get(upload)).toMatchObject({ importJobId: null })
  const made = await site().mutate<VersionWithJobs>('version.import', input)
  expect(await get(upload)).toMatchObject({ importJobId: made.jobIds[0] })
  expect((await site().state()).storeJobs).toMatchObject([
    { kind: 'import', uploadId: upload.id, sourceSizeBytes: image.length, sourceSha256: sha256 },
  ])
  const answer = await range(299_000, 400_000)
  expect([answer.status, answer.headers.get('content-range')]).toEqual([206, 'bytes 299000-299999/300000'])
  expect(Buffer.from(await answer.arrayBuffer()).equals(image.subarray(299_000))).toBe(true)
  expect((await range(300_000, 300_001)).status).toBe(400)

  // It is kept while the edge takes it, and removed with its job's end.
  await expireIn(upload, 0)
  await sweep()
  expect(existsSync(fileOf(upload))).toBe(true)
  const done = { versionId: made.id, root: Buffer.alloc(32, 2).toString('base64'), counter: 1, sizeBytes: 4096 }
  await edge.send({
    method: 'POST',
    path: '/edge/v1/store',
    body: JSON.stringify({
      jobs: [{ id: made.jobIds[0], state: 'done', progressBytes: 0, totalBytes: 0, made: done }],
    }),
  })
  expect(await site().query<StoreJobView>('storeJob.get', { jobId: made.jobIds[0] })).toMatchObject({ state: 'done' })
  expect((await range(0, 9)).status).toBe(404)
  await sweep()
  expect(existsSync(fileOf(upload))).toBe(false)
})

test('an import from a URL goes to an edge that fetches it, and its query is shown to nobody', async () => {
  const { edge, tenant } = site()
  const url = 'https://images.example/linux.qcow2?signature=secret'
  const input = { vdiskId: tenant.vdiskId, edgeId: edge.edgeId, url }
  const refusedOf = async (more: object) => (await site().tryMutation('version.import', { ...input, ...more })).text
  await edge.heartbeat({ storeJobKinds: ['import'] })
  expect(await refusedOf({})).toContain('cannot fetch images from a URL. Update it.')
  expect(await refusedOf({ sourcePath: 'imports/a.raw' })).toContain('Name one image')
  expect(await refusedOf({ url: 'ftp://images.example/a' })).toContain('begins with http:// or https://')
  expect(await refusedOf({ url: 'https://a:b@images.example/' })).toContain('cannot have a user name and a password')
  expect(await refusedOf({ url: 'https://images.example/a b' })).toContain('A URL has no spaces')
  expect(await refusedOf({ sha256: 'abc' })).toContain('A SHA-256 has 64 hexadecimal digits.')
  expect(await refusedOf({ url: null, sourcePath: 'imports/a.raw', sha256 })).toContain('belongs to a URL')
  await edge.heartbeat({ storeJobKinds: ['import', 'import_url'] })
  const made = await site().mutate<VersionWithJobs>('version.import', { ...input, sha256 })
  expect((await site().state()).storeJobs).toMatchObject([{ kind: 'import', sourceUrl: url, sourceSha256: sha256 }])
  const job = await site().query<StoreJobView>('storeJob.get', { jobId: made.jobIds[0] })
  expect(job.sourceUrl).toBe('https://images.example/linux.qcow2')
  const { organizationId } = tenant
  const entries = await site().api.db.auditEntry.findMany({ where: { organizationId }, select: { after: true } })
  expect(JSON.stringify(entries)).toContain('https://images.example/linux.qcow2')
  expect(JSON.stringify(entries)).not.toContain('secret')
})

test('uploads expire, and bytes that belong to none are removed', async () => {
  const { api, tenant } = site()
  const [silent, sending] = [await create(), await create()]
  for (const one of [silent, sending]) {
    await send(one, { offset: 0, bytes: bytesOf(0, 10) })
    await expireIn(one, 1)
  }
  // A piece moves the end.
  await send(sending, { offset: 10, bytes: bytesOf(10, 20) })
  const lost = path.join(api.uploadsDirectory, tenant.organizationId, randomUUID())
  const gone = path.join(api.uploadsDirectory, randomUUID())
  const foreign = path.join(api.uploadsDirectory, 'README')
  mkdirSync(gone)
  for (const file of [lost, path.join(gone, randomUUID()), foreign]) writeFileSync(file, 'x')
  await sweep()
  expect([silent, sending].map((one) => existsSync(fileOf(one)))).toEqual([true, true])
  expect([lost, gone, foreign].map((file) => existsSync(file))).toEqual([false, false, true])
  await expireIn(silent, 0)
  expect(await send(silent, { offset: 10, bytes: bytesOf(10, 20) })).toMatchObject({ status: 404 })
  await sweep()
  expect([silent, sending].map((one) => existsSync(fileOf(one)))).toEqual([false, true])
})
