import { closeSync, existsSync, mkdirSync, openSync, readdirSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Upload {
  id: string
  sha256: string
}
interface Job {
  state: string
  progressBytes: number
  untrusted: { message: string | null }
}
interface Made {
  id: string
  jobIds: [string]
}

const mib = 1 << 20
const imageSize = 24 * mib
const scratch = scratchDirectory()
const uploadsDirectory = path.join(scratch.path, 'uploads')
let plane: ControlPlane
let edge: ControlledEdge
let fetched: string

beforeAll(async () => {
  mkdirSync(uploadsDirectory)
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'), undefined, {
    BOOTFARM_UPLOADS: uploadsDirectory,
    UPLOADS_FREE_GIB: '0',
  })
  edge = await ControlledEdge.start(plane, scratch.path)
  const store = path.join(edge.data, 'store')
  fetched = path.join(store, 'imports/.fetched')
  const init = new RunningProcess(edgeProgram, ['vdisk', 'init', '--beside-files', '--store', store])
  expect(await init.ended, init.output).toBe(0)
  await edge.restart()
})
afterAll(async () => {
  await edge?.stop()
  await plane?.stop()
  scratch.remove()
})

async function pause() {
  if (!edge.process.isRunning) throw new Error(edge.process.output)
  await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Bytes that differ from piece to piece. */
function pieceOf(at: number): Buffer {
  const piece = patterned(mib)
  piece.writeUInt32LE(at, 0)
  return piece
}

async function upload(): Promise<Upload> {
  const { vdiskId } = edge.tenant
  const input = { vdiskId, name: 'linux.raw', sizeBytes: imageSize }
  const { id } = await edge.api.mutate<Upload>('upload.create', input)
  for (let at = 0; at < imageSize; at += mib) {
    const headers = { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(at) }
    const bytes = Uint8Array.from(pieceOf(at))
    const answer = await edge.api.patchBytes(`/vdisks/${vdiskId}/uploads/${id}/bytes`, bytes, headers)
    expect(answer.status).toBe(204)
  }
  return edge.api.query<Upload>('upload.get', { vdiskId, uploadId: id })
}

const importUpload = ({ id }: Upload) =>
  edge.api.mutate<Made>('version.import', {
    vdiskId: edge.tenant.vdiskId,
    edgeId: edge.edgeId,
    uploadId: id,
    bootFiles: 'none',
  })

async function ended({ jobIds: [jobId] }: Made): Promise<Job> {
  for (;;) {
    const job = await edge.api.query<Job>('storeJob.get', { jobId })
    if (job.state !== 'queued' && job.state !== 'running') return job
    await pause()
  }
}

const fetchedSize = (id: string) => (existsSync(path.join(fetched, id)) ? statSync(path.join(fetched, id)).size : 0)

test('an edge fetches an upload, continues after a cut and a restart, and imports it', async () => {
  const sent = await upload()
  edge.uplink.cutAfterBytes = edge.uplink.passedBytes + 8 * mib
  const made = await importUpload(sent)
  while (!edge.uplink.isCut) await pause()
  edge.uplink.cutAfterBytes = Number.POSITIVE_INFINITY
  await edge.restart()
  const held = fetchedSize(sent.id)
  expect(held).toBeGreaterThan(mib)
  expect(held).toBeLessThan(imageSize)
  const before = edge.uplink.passedBytes
  await edge.uplink.heal()
  expect(await ended(made)).toMatchObject({ state: 'done' })
  // What it had was not fetched again.
  expect(edge.uplink.passedBytes - before).toBeLessThan(imageSize - held + 2 * mib)

  const out = path.join(scratch.path, 'exported.raw')
  const store = path.join(edge.data, 'store')
  const exported = new RunningProcess(edgeProgram, ['vdisk', 'export', out, '--version', made.id, '--store', store])
  expect(await exported.ended, exported.output).toBe(0)
  const expected = path.join(scratch.path, 'expected.raw')
  const file = openSync(expected, 'w')
  for (let at = 0; at < imageSize; at += mib) writeSync(file, pieceOf(at))
  closeSync(file)
  const compared = new RunningProcess('cmp', [out, expected])
  expect(await compared.ended, compared.output).toBe(0)
  while (fetchedSize(sent.id) > 0) await pause()
  expect(await edge.api.query('upload.list', { vdiskId: edge.tenant.vdiskId })).toEqual({ items: [] })
})

test('an import of an upload that was deleted, or that changed on the disk, fails with a sentence', async () => {
  const { vdiskId } = edge.tenant
  const [deleted, changed] = [await upload(), await upload()]
  const [organization = ''] = readdirSync(uploadsDirectory)
  const file = openSync(path.join(uploadsDirectory, organization, changed.id), 'r+')
  writeSync(file, Buffer.from('x'), 0, 1, 5 * mib)
  closeSync(file)
  const job = await ended(await importUpload(changed))
  expect(job).toMatchObject({ state: 'failed' })
  expect(job.untrusted.message).toContain('another SHA-256 than the upload: upload the image again')

  await edge.uplink.cut()
  const made = await importUpload(deleted)
  await edge.api.mutate('upload.remove', { vdiskId, uploadId: deleted.id })
  await edge.uplink.heal()
  const gone = await ended(made)
  expect(gone).toMatchObject({ state: 'failed' })
  expect(gone.untrusted.message).toContain('it was deleted or has expired')
  while (readdirSync(fetched).length > 0) await pause()
})
