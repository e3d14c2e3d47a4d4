import { execFileSync } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { differencePieceSize, uplinkVersion } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import type { EdgeClient } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { DirectoryStore } from './object-store.ts'
import { Objects } from './objects.ts'

const site = useTestSite('image_manager')
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()
const file = randomBytes(2 * differencePieceSize + 1000)
const pieces = [0, 1, 2].map((index) =>
  Uint8Array.from(file.subarray(index * differencePieceSize, (index + 1) * differencePieceSize)),
)
const list = Uint8Array.from(Buffer.concat(pieces.map(sha256)))
const packed = { sizeBytes: file.length, listSha256: sha256(list).toString('hex') }

async function makeDifference(edge: EdgeClient, job: object = { kind: 'pack', toControlPlane: true }) {
  const { api, tenant } = site()
  const { organizationId, vdiskId, versionId } = tenant
  const now = api.clock.read()
  const { id } = await api.db.difference.create({
    data: { organizationId, vdiskId, versionId, createdAt: now, neededAt: now },
  })
  const jobId = await makeJob(edge, { differenceId: id, ...job })
  return { id, jobId }
}

async function makeJob(edge: EdgeClient, job: object): Promise<string> {
  const { api, tenant } = site()
  const { organizationId, vdiskId, versionId } = tenant
  const data = { organizationId, edgeId: edge.edgeId, vdiskId, versionId, askedByName: 'A', askedAt: api.clock.read() }
  return (await api.db.storeJob.create({ data: { ...data, ...job } as never })).id
}

const base = (id: string) => `/edge/v1/differences/${id}`
const putList = (id: string, { edge = site().edge, sizeBytes = file.length, body = list } = {}) =>
  edge.send({ method: 'PUT', path: `${base(id)}/list?sizeBytes=${sizeBytes}`, body })
const putPiece = (id: string, index: number, body = pieces[index] ?? list, edge = site().edge) =>
  edge.send({ method: 'PUT', path: `${base(id)}/pieces/${index}`, body })
const missing = async (id: string) => (await site().edge.send({ method: 'GET', path: `${base(id)}/missing` })).body
const row = async (id: string) => site().api.db.difference.findFirst({ where: { id } })

async function get(edge: EdgeClient, path: string, range?: string) {
  const headers = {
    'bootfarm-uplink': String(uplinkVersion),
    ...edge.signatureOf('GET', path),
    ...(range ? { range } : {}),
  }
  const answer = await fetch(`${site().api.url}${path}`, { headers })
  return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
}

test('an edge sends what is missing of a difference, and another one fetches it while a job of its own says so', async () => {
  const { id, jobId } = await makeDifference(site().edge)
  expect((await putList(id)).status).toBe(204)
  expect(await missing(id)).toEqual({ missing: [0, 1, 2] })
  expect((await putPiece(id, 1)).status).toBe(204)
  // The same list again changes nothing.
  expect((await putList(id)).status).toBe(204)
  expect(await missing(id)).toEqual({ missing: [0, 2] })
  for (const index of [2, 0]) expect((await putPiece(id, index)).status).toBe(204)
  expect((await row(id))?.storedAt).toBeNull()
  expect(await missing(id)).toEqual({ missing: [] })
  expect(await row(id)).toMatchObject({ storedAt: expect.any(Date), sizeBytes: BigInt(file.length) })
  const other = await site().enrolEdge()
  expect((await get(other, `${base(id)}/list`)).status).toBe(404)
  // From edges of its site alone.
  const fetchJob = await makeJob(other, { kind: 'fetch', differenceId: id, fromControlPlane: false })
  expect((await get(other, `${base(id)}/pieces/0`)).status).toBe(404)
  const { organizationId } = site().tenant
  await site().api.db.storeJob.update({
    where: { organizationId_id: { organizationId, id: fetchJob } },
    data: { fromControlPlane: true },
  })
  expect((await get(other, `${base(id)}/list`)).bytes).toEqual(Buffer.from(list))
  // One after another: an edge has two places.
  const fetched = []
  for (const index of [1, 2]) fetched.push(await get(other, `${base(id)}/pieces/${index}`))
  expect(Buffer.concat(fetched.map(({ bytes }) => bytes)).equals(file.subarray(differencePieceSize))).toBe(true)
  expect((await get(other, `${base(id)}/pieces/3`)).status).toBe(400)
  const part = await get(other, `${base(id)}/pieces/2`, 'bytes=990-2000')
  expect([part.status, part.bytes.equals(file.subarray(-10))]).toEqual([206, true])
  for (const range of ['bytes=1000-1001', 'bytes=-5', 'bytes=5-4'])
    expect((await get(other, `${base(id)}/pieces/2`, range)).status).toBe(400)
  await site().api.objects.store.delete({ organizationId, differenceId: id })
  expect((await get(other, `${base(id)}/pieces/0`)).status).toBe(404)
  // The keeper of placements has it packed again.
  expect(await row(id)).toMatchObject({ storedAt: null })
  // It gets nothing of what it does not fetch, and sends nothing.
  expect((await putPiece(id, 0, pieces[0], other)).status).toBe(404)
  await site().api.db.storeJob.updateMany({ where: { id: jobId }, data: { state: 'done' } })
  expect((await putPiece(id, 0)).status).toBe(404)
})

test('pieces of other bytes, of another size or number are refused, and a wrong list is', async () => {
  const { id } = await makeDifference(site().edge)
  expect(await putPiece(id, 0)).toMatchObject({ status: 404, body: { detail: 'Send the list of pieces first.' } })
  expect(await putList(id, { sizeBytes: 5 })).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining('has 1 pieces: its list has 32 bytes, not 96') },
  })
  expect((await putList(id, { sizeBytes: 2 ** 50 })).status).toBe(413)
  expect((await putList(id)).status).toBe(204)
  expect(await putPiece(id, 0, pieces[1])).toMatchObject({
    status: 409,
    body: { code: 'conflict', detail: expect.stringContaining('another SHA-256') },
  })
  expect((await putPiece(id, 2, pieces[1])).status).toBe(400)
  expect((await putPiece(id, 3, pieces[2])).status).toBe(400)
  expect(await missing(id)).toEqual({ missing: [0, 1, 2] })
})

test('another list drops the pieces of the one before', async () => {
  const { id } = await makeDifference(site().edge)
  await putList(id)
  for (const index of [0, 1, 2]) await putPiece(id, index)
  expect(await missing(id)).toEqual({ missing: [] })
  const short = Uint8Array.from(list.subarray(0, 32))
  expect((await putList(id, { sizeBytes: differencePieceSize, body: short })).status).toBe(204)
  expect(await row(id)).toMatchObject({ storedAt: null })
  expect(await missing(id)).toEqual({ missing: [0] })
})

test('the differences of an organization have a limit, and one of another organization is unknown', async () => {
  const { api, tenant } = site()
  const { store } = api.objects.settings
  expect(new Objects({ store, organizationBytesMax: 1 }).areOpen).toBe(true)
  const { id } = await makeDifference(site().edge)
  const other = await site().other('image_manager')
  expect((await putList(id, { edge: other.edge })).status).toBe(404)
  const max = api.objects.settings.organizationBytesMax
  const { organizationId, vdiskId, versionId } = tenant
  const now = api.clock.read()
  await api.db.difference.create({
    data: {
      organizationId,
      vdiskId,
      versionId,
      baseVersionId: versionId,
      createdAt: now,
      neededAt: now,
      sizeBytes: max,
    },
  })
  expect(await putList(id)).toMatchObject({ status: 403, body: { code: 'quota_exceeded' } })
})

test('a pack is done once the control plane has all of it; its edge then keeps the difference', async () => {
  const { id, jobId } = await makeDifference(site().edge)
  const end = async (job: string) => {
    const report = { id: job, state: 'done', progressBytes: 9, totalBytes: 9, packed }
    const body = JSON.stringify({ jobs: [report] })
    expect((await site().edge.send({ method: 'POST', path: '/edge/v1/store', body })).status).toBe(200)
    return site().api.db.storeJob.findFirst({ where: { id: job } })
  }
  await putList(id)
  await putPiece(id, 0)
  expect(await end(jobId)).toMatchObject({
    state: 'failed',
    message: expect.stringContaining('has not got all pieces'),
  })
  expect(await site().state()).not.toHaveProperty('keptDifferences')
  const again = await makeJob(site().edge, { kind: 'pack', toControlPlane: true, differenceId: id })
  expect((await site().state()).storeJobs).toMatchObject([{ kind: 'pack', differenceId: id, toControlPlane: true }])
  for (const index of [1, 2]) await putPiece(id, index)
  expect(await missing(id)).toEqual({ missing: [] })
  expect(await end(again)).toMatchObject({ state: 'done' })
  expect((await site().state()).keptDifferences).toEqual([id])
})

test('bytes that rotted in the store are given to nobody, and are sent again', async () => {
  const { id } = await makeDifference(site().edge)
  await putList(id)
  for (const index of [0, 1, 2]) await putPiece(id, index)
  expect(await missing(id)).toEqual({ missing: [] })
  const { api, tenant } = site()
  const other = await site().enrolEdge()
  await makeJob(other, { kind: 'fetch', differenceId: id, fromControlPlane: true })
  const key = { organizationId: tenant.organizationId, differenceId: id, name: '0' }
  await api.objects.store.put(key, Uint8Array.from(pieces[1] ?? []))
  const answer = await get(other, `${base(id)}/pieces/0`)
  expect([answer.status, answer.bytes.toString()]).toEqual([404, expect.stringContaining('other bytes of piece 0')])
  expect(await row(id)).toMatchObject({ storedAt: null })
  expect(await missing(id)).toEqual({ missing: [0] })
  expect((await putPiece(id, 0)).status).toBe(204)
  expect(await missing(id)).toEqual({ missing: [] })
  expect((await get(other, `${base(id)}/pieces/0`)).bytes.equals(Buffer.from(pieces[0] ?? []))).toBe(true)
})

test('a store that fails is a clear error with a pause, and it goes on where it was', async () => {
  const { id } = await makeDifference(site().edge)
  await putList(id)
  await putPiece(id, 0)
  const { api, tenant } = site()
  const folder = path.join(api.uploadsDirectory, 'objects', tenant.organizationId, id)
  // A file in place of the folder: writes fail whoever runs the test.
  renameSync(folder, `${folder}.away`)
  writeFileSync(folder, '')
  const sent = await site().edge.send({
    method: 'PUT',
    path: `${base(id)}/pieces/1`,
    body: pieces[1] ?? list,
  })
  expect(sent).toMatchObject({
    status: 503,
    body: {
      code: 'unavailable',
      detail: expect.stringMatching(
        /^The object store of the control plane could not take piece 1: .*It is tried again/,
      ),
    },
  })
  rmSync(folder)
  renameSync(`${folder}.away`, folder)
  expect(await missing(id)).toEqual({ missing: [1, 2] })
  for (const index of [1, 2]) expect((await putPiece(id, index)).status).toBe(204)
  expect(await missing(id)).toEqual({ missing: [] })
})

const isRoot = process.getuid?.() === 0

test.skipIf(!isRoot)('a full disk is told, and takes the rest when there is space again', async () => {
  const small = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', small])
  try {
    const objects = new Objects({ store: new DirectoryStore(small), organizationBytesMax: 1 << 30 })
    const key = { organizationId: randomUUID(), differenceId: randomUUID() }
    const difference = Object.assign({ sizeBytes: packed.sizeBytes, listSha256: packed.listSha256 }, key)
    await objects.putList(key, { list, sizeBytes: file.length })
    const put = (index: number) => objects.putPiece(difference, { index, bytes: pieces[index] ?? list })
    await put(0)
    await expect(put(1)).rejects.toMatchObject({
      code: 'unavailable',
      publicText: 'The object store of the control plane could not take piece 1: its disk is full. It is tried again.',
    })
    expect(await objects.missing(difference)).toEqual([1, 2])
    execFileSync('mount', ['-o', 'remount,size=12m', small])
    for (const index of [1, 2]) await put(index)
    expect(await objects.missing(difference)).toEqual([])
    expect(Buffer.from(await objects.piece(difference, 1)).equals(Buffer.from(pieces[1] ?? []))).toBe(true)
  } finally {
    execFileSync('umount', [small])
    rmSync(small, { recursive: true })
  }
})
