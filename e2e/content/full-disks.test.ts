import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '../lib/control-plane/api-client.ts'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { importImage, makeStore, untilHeld, verify, writeImage } from '../lib/edge/held-versions.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

interface Made {
  id: string
  jobIds: [string]
}
interface Job {
  state: string
  untrusted: { message: string | null }
}
interface Copy {
  versionId: string
  edgeId: string
  waitsFor: string | null
  untrusted: { message: string | null }
}

const mib = 1 << 20
const imageSize = 24 * mib
const pieceSize = 4 * mib
/** From the control plane, or from the edge. */
const spaceText = /has [\d.]+ \w+ free, and (the import|fetching the image) needs (at least )?[\d.]+ MiB/
const image = Buffer.concat(Array.from({ length: 24 }, (_, at) => Buffer.concat([Buffer.of(at), patterned(mib - 1)])))
const scratch = scratchDirectory()
let plane: ControlPlane
/** Its file system is small. */
let edge: ControlledEdge
let other: ControlledEdge
let uploads: string

/** The layer runs this file in a mount namespace, which ends with it. */
const isAlone = process.env.BOOTFARM_OWN_NETWORK === '1'

/** Mounts a file system of a few MiB. */
function fileSystem(name: string, sizeMib: number): string {
  const place = path.join(scratch.path, name)
  mkdirSync(place)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMib}m`, 'tmpfs', place])
  return place
}

/** Writes until nothing fits any more, and returns how to free it. */
function fill(directory: string): () => void {
  const file = path.join(directory, 'ballast')
  const write = () => {
    for (;;) writeFileSync(file, Buffer.alloc(16 * mib, 1), { flag: 'a' })
  }
  expect(write).toThrow(/ENOSPC/)
  return () => rmSync(file)
}

async function send(id: string, offset: number): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) }
  const bytes = Uint8Array.from(image.subarray(offset, offset + pieceSize))
  const answer = await edge.api.patchBytes(`/vdisks/${edge.tenant.vdiskId}/uploads/${id}/bytes`, bytes, headers)
  return { status: answer.status, text: await answer.text() }
}

const held = async (uploadId: string) =>
  (await edge.api.query<{ receivedBytes: number }>('upload.get', { vdiskId: edge.tenant.vdiskId, uploadId }))
    .receivedBytes

async function sendRest(id: string): Promise<void> {
  for (let at = await held(id); at < imageSize; at = await held(id)) expect((await send(id, at)).status).toBe(204)
}

const begin = () =>
  edge.api.mutate<{ id: string }>('upload.create', {
    vdiskId: edge.tenant.vdiskId,
    name: 'linux.raw',
    sizeBytes: imageSize,
  })

const importUpload = (uploadId: string) =>
  edge.api.mutate<Made>('version.import', {
    vdiskId: edge.tenant.vdiskId,
    edgeId: edge.edgeId,
    uploadId,
    bootFiles: 'none',
  })

/** Says why an import failed: the control plane refuses it by the edge's last report, or the edge's job fails. */
async function whyNotImported(uploadId: string): Promise<string> {
  try {
    const job = await ended(await importUpload(uploadId))
    expect(job.state).toBe('failed')
    return job.untrusted.message ?? ''
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}

/** Imports it once the edge has reported that there is space again. */
async function importWithSpace(uploadId: string): Promise<Made> {
  for (;;) {
    const made = await importUpload(uploadId).catch((error: unknown) => {
      if (error instanceof ApiError && spaceText.test(error.message)) return null
      throw error
    })
    if (made) return made
    await pause()
  }
}

async function ended({ jobIds: [jobId] }: Made): Promise<Job> {
  for (;;) {
    const job = await edge.api.query<Job>('storeJob.get', { jobId })
    if (job.state !== 'queued' && job.state !== 'running') return job
    await pause()
  }
}

async function pause(): Promise<void> {
  if (!edge.process.isRunning) throw new Error(edge.process.output)
  await new Promise((resolve) => setTimeout(resolve, 100))
}

describe.skipIf(!isAlone)(
  `a full disk is named, and nothing is lost by it${isAlone ? '' : ' (needs a namespace of its own: npm test -- content)'}`,
  () => {
    beforeAll(async () => {
      uploads = fileSystem('uploads', 64)
      // Beside what a fetch leaves free, and the edge's own files.
      const small = fileSystem('edge', 440)
      const objects = path.join(scratch.path, 'objects')
      mkdirSync(objects)
      plane = await ControlPlane.start(path.join(scratch.path, 'plane'), undefined, {
        BOOTFARM_UPLOADS: uploads,
        BOOTFARM_OBJECTS: objects,
        UPLOADS_FREE_GIB: '0',
      })
      edge = await ControlledEdge.start(plane, small)
      await makeStore(edge)
    })
    afterAll(async () => {
      for (const one of [edge, other]) await one?.stop()
      await plane?.stop()
      for (const name of ['uploads', 'edge']) execFileSync('umount', ['--lazy', path.join(scratch.path, name)])
      scratch.remove()
    })

    test('the control plane’s, while a file is uploaded: the upload continues when there is space', async () => {
      const { id } = await begin()
      expect((await send(id, 0)).status).toBe(204)
      const free = fill(uploads)
      const refused = await send(id, pieceSize)
      expect(refused.status).toBe(409)
      expect(refused.text).toMatch(/disk of the control plane is full. What arrived is kept: continue/)
      expect(await held(id)).toBeGreaterThanOrEqual(pieceSize)
      free()
      await sendRest(id)
      const job = await ended(await importUpload(id))
      expect(job, job.untrusted.message ?? '').toMatchObject({ state: 'done' })
    })

    test('the edge’s, before and while it fetches an image: the upload is imported when there is space', async () => {
      const { id } = await begin()
      await sendRest(id)
      let free = fill(edge.data)
      expect(await whyNotImported(id)).toMatch(spaceText)
      free()

      edge.uplink.cutAfterBytes = edge.uplink.passedBytes + 8 * mib
      const made = await importWithSpace(id)
      while (!edge.uplink.isCut) await pause()
      edge.uplink.cutAfterBytes = Number.POSITIVE_INFINITY
      free = fill(edge.data)
      await edge.uplink.heal()
      const failed = await ended(made)
      expect(failed.state).toBe('failed')
      // If its file had all of its space already, the import meets the full disk.
      expect(failed.untrusted.message).toMatch(
        /disk became full while it fetched the image|^The disk of the store is full/,
      )
      free()
      const job = await ended(await importWithSpace(id))
      expect(job, job.untrusted.message ?? '').toMatchObject({ state: 'done' })
    })

    test('the edge’s, when a version is to come from another edge: it comes when there is space', async () => {
      other = await ControlledEdge.start(plane, path.join(scratch.path, 'other'), [], edge)
      await makeStore(other)
      const free = fill(edge.data)
      writeImage(other, 'placed', imageSize)
      const made = await importImage(other, 'placed')
      const whyNot = async () => {
        const { vdiskId } = edge.tenant
        const { copies } = await edge.api.query<{ copies: Copy[] }>('placement.copies', { vdiskId })
        const copy = copies.find(({ edgeId, versionId }) => edgeId === edge.edgeId && versionId === made.id)
        return copy?.waitsFor === 'space' || copy?.waitsFor === 'failed' ? copy.untrusted.message : null
      }
      let why = await whyNot()
      for (; why === null; why = await whyNot()) await pause()
      expect(why).toMatch(
        /it needs .*, and .* are free|disk has \d+ MiB free, and fetching the difference needs \d+ MiB/,
      )
      free()
      await untilHeld(made.id, [edge])
      await verify(edge, made.id)
    })
  },
)
