import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { required } from '../lib/control-plane/api-client.ts'
import type { SimulatedBoot } from '../lib/edge/controlled-edge.ts'
import { StoreEdge } from '../lib/edge/store-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

// A real edge whose operator imports images by hand, and a control plane that adopts them.

interface Image {
  versionId: string
  state: string
  sizeBytes: number | null
  hasKernel: boolean
  parent: { number: number } | null
  problem: string | null
  untrusted: { name: string }
}
interface Made {
  id: string
  number: number
  jobIds: [string]
}
interface Job {
  state: string
  untrusted: { message: string | null }
}

const scratch = scratchDirectory()
let site: StoreEdge
let store: string

beforeAll(async () => {
  const databaseUrl = readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim()
  const [apiUrl, webUrl] = [required('BOOTFARM_API_URL'), required('BOOTFARM_WEB_URL')]
  site = await StoreEdge.start({ databaseUrl, apiUrl, webUrl }, scratch.path)
  store = path.join(site.edge.data, 'store')
})
afterAll(async () => {
  await site?.edge.stop()
  scratch.remove()
})

async function vdisk(args: string[], code = 0): Promise<Record<string, unknown>[]> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store, '--json'])
  expect(await running.ended, running.output).toBe(code)
  return running.jsonLines()
}
/** Imports by hand, at the edge. @returns the version's id */
async function importByHand(args: string[]): Promise<string> {
  const made = (await vdisk(['import', ...args])).find(({ version }) => version !== undefined)
  return String(made?.version)
}

async function pause() {
  if (!site.edge.process.isRunning) throw new Error(site.edge.process.output)
  await new Promise((resolve) => setTimeout(resolve, 50))
}

const images = async () =>
  (await site.edge.api.query<{ items: Image[] }>('edge.images', { edgeId: site.edge.edgeId })).items
async function untilImage(versionId: string, is: (image: Image) => boolean): Promise<Image> {
  for (;;) {
    const found = (await images()).find((image) => image.versionId === versionId)
    if (found && is(found)) return found
    await pause()
  }
}
const isPresent = (image: Image) => image.state === 'present'
const adopt = (versionId: string, more: object = {}) =>
  site.edge.api.mutate<Made>('version.adopt', {
    edgeId: site.edge.edgeId,
    versionId,
    vdiskId: site.edge.tenant.vdiskId,
    ...more,
  })
async function ended(jobId: string): Promise<Job> {
  for (;;) {
    const job = await site.edge.api.query<Job>('storeJob.get', { jobId })
    if (job.state !== 'queued' && job.state !== 'running') return job
    await pause()
  }
}
const extentFiles = () =>
  ['extents', 'nodes', 'versions'].flatMap((dir) =>
    readdirSync(path.join(store, dir)).map((name) => [`${dir}/${name}`, readFileSync(path.join(store, dir, name))]),
  )

test('an image that was imported by hand is adopted without a write, and a device boots it byte for byte', async () => {
  const image = path.join(store, site.imagePath)
  const id = await importByHand([image, '--name', 'Lab by hand', '--note', 'Büro, "neu"'])
  // It appears without any further action. The edge may report it while it is imported, too.
  expect(await untilImage(id, isPresent)).toMatchObject({
    hasKernel: true,
    parent: null,
    problem: null,
    sizeBytes: expect.any(Number),
    untrusted: { name: 'Lab by hand' },
  })
  const before = extentFiles()
  const made = await adopt(id, { state: 'released' })
  expect(made.id).toBe(id)
  await expect(adopt(id)).rejects.toThrow(/version 2 of Linux/)
  expect(await ended(made.jobIds[0])).toMatchObject({ state: 'done' })
  expect(extentFiles()).toEqual(before)
  const { vdiskId } = site.edge.tenant
  const { versions } = await site.edge.api.query<{ versions: { id: string; note: string }[] }>('vdisk.get', { vdiskId })
  expect(versions.find((version) => version.id === id)?.note, 'what was written at the edge').toBe('Büro, "neu"')
  expect((await images()).map(({ versionId }) => versionId)).not.toContain(id)
  while ((await site.versionFor(0)) !== made.number) await pause()
  const device = site.bootWhole(0)
  expect(await device.ended, device.output).toBe(0)
  const [booted] = device.jsonLines<SimulatedBoot>().filter(({ mac }) => mac !== undefined)
  expect(booted, device.output).toMatchObject({ mac: site.macOf(0), outcome: 'ready' })
})

test('a manual update of it follows it, and both are merged like any others', async () => {
  const [base] = (await vdisk(['list'])).filter(({ name }) => name === 'Lab by hand')
  const changed = path.join(scratch.path, 'changed.raw')
  const bytes = readFileSync(path.join(store, site.imagePath))
  bytes.writeUInt32LE(7, bytes.length - 4096)
  writeFileSync(changed, bytes)
  const id = await importByHand([changed, '--parent', String(base?.version), '--parent-boot-files'])
  expect(await untilImage(id, isPresent)).toMatchObject({ parent: { number: 2 } })
  const made = await adopt(id)
  expect(await ended(made.jobIds[0])).toMatchObject({ state: 'done' })
  const { vdiskId } = site.edge.tenant
  const { revision } = await site.edge.api.query<{ revision: number }>('vdisk.get', { vdiskId })
  const merged = await site.edge.api.mutate<Made>('version.merge', {
    versionId: id,
    vdiskRevision: revision,
    into: 'update',
  })
  expect(await ended(merged.jobIds[0])).toMatchObject({ state: 'done' })
})

test('an image that is still being imported, or found damaged when read, is no version', async () => {
  const args = ['vdisk', 'import', '-', '--store', store, '--name', 'Half', '--no-boot-files', '--json']
  const byHand = new RunningProcess(edgeProgram, args, {}, 'pipe')
  await byHand.waitFor(/"import":"/)
  const half = String(byHand.jsonLines<{ import?: string }>().find((line) => line.import)?.import)
  // Another manual import rebuilds the list; the first one is not finished.
  mkdirSync(path.join(store, 'versions/looked'))
  expect((await untilImage(half, () => true)).problem).toContain('still being imported')
  await expect(adopt(half)).rejects.toThrow(/still being imported/)
  byHand.end('y'.repeat(1 << 20))
  expect(await byHand.ended, byHand.output).toBe(0)
  await untilImage(half, ({ problem }) => problem === null)

  // Only somebody with the disk in hand can do this.
  const [newest = ''] = readdirSync(path.join(store, 'extents')).toSorted().toReversed()
  const file = path.join(store, 'extents', newest)
  const bytes = readFileSync(file)
  // In a unit of eight blocks.
  bytes.write('z', bytes.lastIndexOf('y'))
  writeFileSync(file, bytes)
  const made = await adopt(half, { vdiskId: null, farmId: site.edge.tenant.farmId, name: 'Half' })
  expect(await ended(made.jobIds[0])).toMatchObject({
    state: 'failed',
    untrusted: { message: expect.stringMatching(/is damaged in 8 places/) },
  })
  expect((await untilImage(half, ({ problem }) => problem !== null)).problem).toContain('The image is damaged')
  await expect(adopt(half)).rejects.toThrow(/The image is damaged/)
})
