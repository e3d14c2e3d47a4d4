import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, symlinkSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { required } from '../lib/control-plane/api-client.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Job {
  id: string
  kind: string
  state: string
  progressBytes: number
  untrusted: { message: string | null }
}
interface Version {
  id: string
  access: string | null
  sizeBytes: number
  commandLine: string
  kernel: { sizeBytes: number } | null
  manifest: { root: string } | null
  atEdges: { state: string; ownBytes: number; sharedBytes: number }[]
}
interface Made {
  id: string
  jobIds: [string]
}

const mib = 1 << 20
const scratch = scratchDirectory()
let edge: ControlledEdge
let store: string

beforeAll(async () => {
  const databaseUrl = readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim()
  const [apiUrl, webUrl] = [required('BOOTFARM_API_URL'), required('BOOTFARM_WEB_URL')]
  edge = await ControlledEdge.start({ databaseUrl, apiUrl, webUrl }, scratch.path)
  store = path.join(edge.data, 'store')
  await vdisk(['init', '--beside-files'])
  symlinkSync(scratch.path, path.join(store, 'imports/out'))
  // A running edge without a store looks for one now and then; one that starts sees it at once.
  await edge.restart()
})
afterAll(async () => {
  await edge?.stop()
  scratch.remove()
})

/** Done by hand, at the edge. */
async function vdisk(args: string[]): Promise<Record<string, unknown>[]> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store, '--json'])
  expect(await running.ended, running.output).toBe(0)
  return running.jsonLines()
}

async function pause() {
  if (!edge.process.isRunning) throw new Error(edge.process.output)
  await new Promise((resolve) => setTimeout(resolve, 20))
}

const job = (jobId: string) => edge.api.query<Job>('storeJob.get', { jobId })
async function untilJob(jobId: string, is: (job: Job) => boolean): Promise<Job> {
  for (;;) {
    const found = await job(jobId)
    if (is(found)) return found
    await pause()
  }
}
const isOver = ({ state }: Job) => state !== 'queued' && state !== 'running'
const ended = (jobId: string) => untilJob(jobId, isOver)

const vdiskNow = () =>
  edge.api.query<{ revision: number; versions: Version[] }>('vdisk.get', { vdiskId: edge.tenant.vdiskId })
const versionNow = async (id: string) => (await vdiskNow()).versions.find((one) => one.id === id)

function importImage(sourcePath: string, more: object = {}): Promise<Made> {
  const { edgeId, tenant } = edge
  return edge.api.mutate<Made>('version.import', { vdiskId: tenant.vdiskId, edgeId, sourcePath, ...more })
}

/** Bytes everywhere, so that each block takes time. */
function writeImage(name: string, sizeMib: number): string {
  const fd = openSync(path.join(store, 'imports', name), 'w')
  const piece = patterned(mib)
  for (let at = 0; at < sizeMib; at += 1) {
    piece.writeUInt32LE(at, 0)
    writeSync(fd, piece)
  }
  closeSync(fd)
  return `imports/${name}`
}

/** More than an import reads ahead of its last report; beyond that, progress is reported. */
const readAheadSize = 24 * mib
/** Images whose import is held in progress; the import takes long enough to be found. */
const heldSizeMib = 256

/** Returns the process that the edge started for a job, paused once it has read part of the image. */
async function heldImport(command = 'import'): Promise<number> {
  for (;;) {
    for (const name of readdirSync('/proc')) {
      const pid = Number(name)
      if (!pid) continue
      try {
        const parent = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]
        if (Number(parent) !== edge.process.pid) continue
        if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[2] !== command) continue
        const read = Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
        if (read < readAheadSize) continue
        process.kill(pid, 'SIGSTOP')
        return pid
      } catch {
        // It has ended in the meantime.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

test('an image becomes a version with a kernel, is merged and verified, and unneeded data is freed', async () => {
  const source = writeImage('linux.raw', 8)
  const made = await importImage(source, { kernelPath: 'kernel', commandLine: 'quiet' })
  expect(await ended(made.jobIds[0])).toMatchObject({ state: 'done' })
  expect(await versionNow(made.id)).toMatchObject({
    access: 'test',
    sizeBytes: 8 * mib,
    commandLine: 'quiet',
    manifest: { root: expect.any(String) },
    kernel: { sizeBytes: expect.any(Number) },
  })
  // Its tree nodes come on top.
  const isHeld = async () => ((await versionNow(made.id))?.atEdges[0]?.ownBytes ?? 0) > 8 * mib
  while (!(await isHeld())) await pause()
  const { revision: vdiskRevision } = await vdiskNow()
  const merged = await edge.api.mutate<Made>('version.merge', {
    versionId: made.id,
    vdiskRevision,
    into: 'base',
  })
  expect(await ended(merged.jobIds[0])).toMatchObject({ state: 'done' })
  const [first, second] = [await versionNow(made.id), await versionNow(merged.id)]
  expect(second).toMatchObject({ access: 'test', manifest: { root: first?.manifest?.root } })
  for (const kind of ['verify', 'gc']) {
    const { id } = await edge.api.mutate<Job>('storeJob.start', { edgeId: edge.edgeId, kind })
    expect(await ended(id)).toMatchObject({ state: 'done' })
  }
})

test.each([
  ['a missing file', 'imports/absent.raw', { bootFiles: 'none' }, /imports\/absent.raw does not exist/],
  ['a path out of the store', 'imports/out/trace.csv', { bootFiles: 'none' }, /leads out of the store/],
  ["the store's own file", 'store-key', { bootFiles: 'none' }, /is one of the store's own files/],
  ['a disk without the required kernel', 'imports/linux.raw', {}, /The boot files of the disk cannot be used/],
  [
    'an initramfs of the store’s own',
    'imports/linux.raw',
    { kernelPath: 'kernel', initrdPath: 'store-key' },
    /is one of the store's own files/,
  ],
] as const)('%s is no image: the job says why, and no version is left', async (_what, sourcePath, more, why) => {
  const made = await importImage(sourcePath, more)
  const failed = await ended(made.jobIds[0])
  expect(failed).toMatchObject({ state: 'failed', untrusted: { message: expect.stringMatching(why) } })
  expect(await versionNow(made.id)).toBeUndefined()
})

test('an edge that is killed with -9 in the middle of a job resumes it when it is back', async () => {
  const made = await importImage(writeImage('killed.raw', heldSizeMib), { bootFiles: 'none' })
  await heldImport()
  await untilJob(made.jobIds[0], ({ progressBytes }) => progressBytes > 0)
  await edge.restart()
  expect(await ended(made.jobIds[0])).toMatchObject({ state: 'done' })
  expect(await versionNow(made.id)).toMatchObject({
    access: 'test',
    sizeBytes: heldSizeMib * mib,
    kernel: null,
  })
})

test('while an image is read the store does other work, and the next image', async () => {
  const made = await importImage(writeImage('long.raw', heldSizeMib), { bootFiles: 'none' })
  const pid = await heldImport()
  const { id } = await edge.api.mutate<Job>('storeJob.start', { edgeId: edge.edgeId, kind: 'gc' })
  expect(await ended(id)).toMatchObject({ state: 'done' })
  const { revision: vdiskRevision, versions } = await vdiskNow()
  const sealed = versions.find(({ manifest, atEdges }) => manifest !== null && atEdges[0]?.state === 'present')
  const merged = await edge.api.mutate<Made>('version.merge', {
    versionId: sealed?.id,
    vdiskRevision,
    into: 'base',
  })
  expect(await ended(merged.jobIds[0])).toMatchObject({ state: 'done' })
  expect(await job(made.jobIds[0])).toMatchObject({ state: 'running' })
  process.kill(pid, 'SIGCONT')
  expect(await ended(made.jobIds[0])).toMatchObject({ state: 'done' })
  expect(await versionNow(made.id)).toMatchObject({ access: 'test', sizeBytes: heldSizeMib * mib })
})

test('a job that is cancelled while running stops and leaves nothing behind', async () => {
  const before = (await vdisk(['list'])).length
  const made = await importImage(writeImage('cancelled.raw', heldSizeMib), { bootFiles: 'none' })
  const pid = await heldImport()
  await untilJob(made.jobIds[0], ({ state }) => state === 'running')
  expect(await edge.api.mutate<Job>('storeJob.cancel', { jobId: made.jobIds[0] })).toMatchObject({
    state: 'cancelled',
  })
  while (readdirSync('/proc').includes(String(pid))) await pause()
  expect(await versionNow(made.id)).toBeUndefined()
  const { items } = await edge.api.query<{ items: Job[] }>('storeJob.list', { edgeId: edge.edgeId })
  const [deleting] = items
  expect(deleting?.kind).toBe('delete')
  expect(await ended(deleting?.id ?? '')).toMatchObject({ state: 'done' })
  expect(await vdisk(['list'])).toHaveLength(before)
})

/** Imports an image, and waits until the edge has reported that it holds the version. */
async function heldVersion(name: string, sizeMib: number): Promise<string> {
  const made = await importImage(writeImage(name, sizeMib), { bootFiles: 'none' })
  expect(await ended(made.jobIds[0])).toMatchObject({ state: 'done' })
  while ((await versionNow(made.id))?.atEdges[0]?.state !== 'present') await pause()
  return made.id
}

test('a version is exported to a file that another program reads, whose name the job says', async () => {
  const versionId = await heldVersion('exported.raw', 8)
  const start = { edgeId: edge.edgeId, kind: 'export', versionId, format: 'qcow2' }
  const said = async () => {
    const { id } = await edge.api.mutate<Job>('storeJob.start', start)
    const done = await ended(id)
    expect(done).toMatchObject({ state: 'done' })
    return done.untrusted.message ?? ''
  }
  const [, file = '', wrote] =
    /^exported to (exports\/\S+\.qcow2), a disk of 8\.0 MiB: wrote (.*)$/.exec(await said()) ?? []
  expect(wrote).toBe('8.0 MiB')
  if (existsSync('/usr/bin/qemu-img'))
    execFileSync('qemu-img', ['compare', '-f', 'raw', path.join(store, 'imports/exported.raw'), path.join(store, file)])
  // The same version and format are the same file.
  expect(await said()).toContain(`exported to ${file}, a disk of 8.0 MiB: wrote 0 B`)
})

test('an export that is cancelled leaves no file that looks like one, and its rest is freed', async () => {
  const versionId = await heldVersion('cut-off.raw', heldSizeMib)
  const start = { edgeId: edge.edgeId, kind: 'export', versionId, format: 'vhdx' }
  const { id } = await edge.api.mutate<Job>('storeJob.start', start)
  const pid = await heldImport('export')
  await untilJob(id, ({ state }) => state === 'running')
  await edge.api.mutate<Job>('storeJob.cancel', { jobId: id })
  while (readdirSync('/proc').includes(String(pid))) await pause()
  const left = () => readdirSync(path.join(store, 'exports')).filter((name) => name.includes('.vhdx'))
  expect(left()).toEqual([expect.stringMatching(/\.vhdx\.part$/)])
  const freeing = await edge.api.mutate<Job>('storeJob.start', { edgeId: edge.edgeId, kind: 'gc' })
  expect(await ended(freeing.id)).toMatchObject({ state: 'done' })
  expect(left()).toEqual([])
})

test('a job that finds the store in use names the process, and finishes afterwards', async () => {
  // Versions of the tests before are counted, and stay checked for at least a minute.
  const byHand = new RunningProcess(edgeProgram, ['vdisk', 'gc', '--store', store, '--rate-mib', '4', '--json'])
  await byHand.waitFor(/"progress"/)
  const { id } = await edge.api.mutate<Job>('storeJob.start', { edgeId: edge.edgeId, kind: 'gc' })
  const waiting = await untilJob(id, ({ untrusted }) => untrusted.message !== null)
  expect(waiting).toMatchObject({ state: 'running' })
  expect(waiting.untrusted.message).toContain(`is being changed by \`vdisk gc\` (process ${byHand.pid} on `)
  byHand.kill('SIGTERM')
  expect(await byHand.ended, byHand.output).toBe(3)
  expect(await ended(id)).toMatchObject({ state: 'done' })
})
