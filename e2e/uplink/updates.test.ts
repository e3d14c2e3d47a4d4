import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addVdisk } from '../lib/control-plane/another-vdisk.ts'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { installedVersion, ReleaseRepository } from '../lib/control-plane/releases.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

interface EdgeDetail {
  agentVersion: string
  release: { version: string; attempt: number; state: string; cause: string | null } | null
}

const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
const disk = patterned(64 * 512)
let repository: ReleaseRepository
let plane: ControlPlane | undefined
let edge: ControlledEdge
let device: StreamDevice

beforeAll(async () => {
  repository = new ReleaseRepository(scratch.path)
  const programWith = (texts: Record<string, string>) => repository.programWith(texts)
  const endsAtOnce = programWith({ [installedVersion]: '0.3.0', serve: 'sErVe' })
  // It serves, and nobody at the control plane answers what it asks for.
  const neverHealthy = programWith({ [installedVersion]: '0.5.0', '/edge/v1/': '/edge/v0/' })
  const others = ['0.2.0', '0.4.0'].map((version) => programWith({ [installedVersion]: version }))
  repository.add(edgeProgram, endsAtOnce, neverHealthy, ...others)
  plane = await ControlPlane.start(inScratch('plane'), undefined, repository.settings)
  edge = await ControlledEdge.start(plane, inScratch('site'))
  const { vdiskId } = edge.tenant
  const { revision } = await edge.api.query<{ revision: number }>('vdisk.get', { vdiskId })
  const writeCache = { class: 'private', limitBytes: null, full: 'stop' }
  await edge.api.mutate('vdisk.updateWriteCache', { vdiskId, revision, ...writeCache })
  const volatileVdisk = await addVdisk(plane.databaseUrl, edge, edge.tenant.deviceIds.slice(1, 2), 'edge')
  // The first device's writes are kept by this edge, which its state says.
  await until(async () => {
    const state = await edge.stateInForce()
    const isVolatile = state?.vdisks.some(({ id, writeCache }) => id === volatileVdisk && writeCache?.class === 'edge')
    return isVolatile === true && state?.devices.some(({ home }) => home !== undefined) === true
  })
  device = await StreamDevice.boot(edge.httpUrl, edge.tenant.macs[0] ?? '')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
})
afterAll(async () => {
  device?.close()
  await edge?.stop()
  await plane?.stop()
  scratch.remove()
})

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const order = (version: string | null) => edge.api.mutate('edge.orderRelease', { edgeId: edge.edgeId, version })
const untilReported = (release: Partial<EdgeDetail['release']>, agentVersion: string) =>
  until(async () => {
    const found = await edge.query<EdgeDetail>()
    const wanted = Object.entries(release ?? {})
    return (
      found.agentVersion === agentVersion &&
      wanted.every(([name, value]) => (found.release as Record<string, unknown> | null)?.[name] === value)
    )
  })

let step = 0
let resumedCount = 0
/** The byte that fills each sector whose write the edge has acknowledged. */
const written = new Map<number, number>()

/** Resumes the session where the program was exchanged meanwhile. */
async function resumed<T extends Buffer | string>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== 'no_session') return answer
    resumedCount += 1
    expect(await device.hello()).toMatchObject({ type: 'welcome' })
  }
}

async function expectSector(sector: number): Promise<void> {
  const byte = written.get(sector)
  const expected = byte === undefined ? disk.subarray(sector * 512, (sector + 1) * 512) : Buffer.alloc(512, byte)
  expect(await resumed(() => device.read(sector))).toEqual(expected)
}

/** Writes one sector and reads another one; fails where a write is refused or an acknowledged one is not found. */
async function readOn(): Promise<void> {
  step += 1
  // Half of the disk is never written.
  const [sector, byte] = [8 * (step % 4), 1 + (step % 255)]
  expect(await resumed(() => device.write(sector, byte))).toBe('done')
  written.set(sector, byte)
  await expectSector(step % 64)
}

/** Reads and writes on until this has happened. */
async function readUntil(done: Promise<void>): Promise<void> {
  let isDone = false
  const ended = done.finally(() => {
    isDone = true
  })
  while (!isDone) await readOn()
  await ended
  for (const sector of written.keys()) await expectSector(sector)
}

test('a release reaches a running edge, which continues as it, while a device reads and writes', async () => {
  const { pid } = edge.process
  await order('0.2.0')
  await readUntil(untilReported({ version: '0.2.0', state: 'healthy', cause: null }, '0.2.0'))
  expect(edge.process.pid).toBe(pid)
  expect(edge.process.output).toMatch(/bootfarm-edge 0\.2\.0 is healthy and has taken over/)
  // The installed program continues as the release from its next start on.
  await edge.restart()
  await readUntil(untilReported({ state: 'healthy' }, '0.2.0'))
})

test('a program that is not what was released is refused, and the edge serves as before', async () => {
  const folder = path.join(repository.directory, 'targets/bootfarm-edge/0.4.0/x86_64')
  const [file = ''] = readdirSync(folder)
  const bytes = readFileSync(path.join(folder, file))
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  writeFileSync(path.join(folder, file), bytes)
  await order('0.4.0')
  await readUntil(untilReported({ version: '0.4.0', state: 'fetching', cause: 'target_refused' }, '0.2.0'))
  expect(readdirSync(edge.data)).not.toContain('updated-program.next')
})

test('a release that ends at once is left at the next start, reported, and tried again only when it is ordered again', async () => {
  for (let attempts = 0; attempts < 2; attempts++) {
    await order('0.3.0')
    await edge.process.ended
    // Whether it misses the command or the value of --dhcp depends on how it was built.
    expect(edge.process.output).toMatch(/The program is exchanged.*'serve/s)
    // As a service manager does.
    await edge.restart()
    await readUntil(untilReported({ version: '0.3.0', state: 'failed', cause: 'ended' }, '0.2.0'))
    await edge.restart()
    await readUntil(untilReported({ version: '0.3.0', state: 'failed', cause: 'ended' }, '0.2.0'))
    expect(edge.process.output).not.toMatch(/is fetched/)
  }
})

test('a release that serves and never reaches the control plane is left by itself, and a device that writes loses nothing', async () => {
  const { pid } = edge.process
  // Its writes end with the process. It does nothing meanwhile: its cache is handed over twice.
  const other = await StreamDevice.boot(edge.httpUrl, edge.tenant.macs[1] ?? '')
  expect(await other.hello()).toMatchObject({ type: 'welcome', write_cache: 'edge' })
  expect(await other.write(3, 77)).toBe('done')
  resumedCount = 0
  await order('0.5.0')
  await readUntil(untilReported({ version: '0.5.0', state: 'failed', cause: 'no_control_plane' }, '0.2.0'))
  expect(edge.process.pid).toBe(pid)
  expect(edge.process.output).toMatch(/bootfarm-edge 0\.5\.0 does not reach the control plane/)
  // It served until it was left: the device has resumed there, and once more afterwards.
  expect(resumedCount).toBeGreaterThanOrEqual(2)
  expect(await other.read(3)).toBe('no_session')
  expect(await other.hello()).toMatchObject({ type: 'welcome' })
  expect(await other.read(3)).toEqual(Buffer.alloc(512, 77))
  await edge.restart()
  await readUntil(untilReported({ version: '0.5.0', state: 'failed', cause: 'no_control_plane' }, '0.2.0'))
  expect(await other.hello()).toBe('cache_lost')
  other.close()
  expect(edge.process.output).not.toMatch(/is fetched/)
})

test('an edge returns to an older release when that is ordered', async () => {
  await order(installedVersion)
  await readUntil(untilReported({ version: installedVersion, state: 'healthy' }, installedVersion))
  await order(null)
  await readUntil(untilReported({}, installedVersion))
})
