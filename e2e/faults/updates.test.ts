import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
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
const repository = inScratch('repository')
const disk = patterned(64 * 512)
const installedVersion = '0.1.0'
let plane: ControlPlane | undefined
let edge: ControlledEdge
let device: StreamDevice

/** Runs the release script, whose keys lie beside the repository. */
function release(command: 'root' | 'add', ...words: string[]): void {
  const script = path.join(import.meta.dirname, '../../scripts/release/repository.mjs')
  const keys = ['targets', 'snapshot', 'timestamp'].flatMap((role) => [`--${role}`, inScratch(`${role}.pem`)])
  execFileSync(process.execPath, [script, command, '--repository', repository, ...keys, ...words])
}

/** Makes a program that differs from the built one in these texts, each replaced by one of the same length. */
function programWith(texts: Record<string, string>): string {
  let bytes = readFileSync(edgeProgram).toString('latin1')
  for (const [from, to] of Object.entries(texts)) {
    expect(to.length).toBe(from.length)
    expect(bytes).toContain(from)
    bytes = bytes.replaceAll(from, to)
  }
  const file = inScratch(`program-${Object.values(texts).join('-')}`)
  writeFileSync(file, Buffer.from(bytes, 'latin1'))
  return file
}

beforeAll(async () => {
  release('root', '--root', inScratch('root-1.pem'), '--root', inScratch('root-2.pem'), '--threshold', '2')
  const endsAtOnce = programWith({ [installedVersion]: '0.3.0', serve: 'sErVe' })
  const others = ['0.2.0', '0.4.0'].map((version) => programWith({ [installedVersion]: version }))
  release('add', edgeProgram, endsAtOnce, ...others)
  plane = await ControlPlane.start(inScratch('plane'), undefined, {
    BOOTFARM_EDGE_UPDATES: repository,
    BOOTFARM_TIMESTAMP_KEY: inScratch('timestamp.pem'),
  })
  edge = await ControlledEdge.start(plane, inScratch('site'))
  await until(async () => (await edge.stateInForce()) !== undefined)
  device = await StreamDevice.boot(edge.httpUrl, edge.tenant.macs[0] ?? '')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
}, 180_000)
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

let sector = 0
/** Reads the next sector, by resuming where the program was exchanged since the last time; fails where it is wrong. */
async function readOn(): Promise<void> {
  sector = (sector + 1) % 64
  let found = await device.read(sector)
  if (found === 'no_session') {
    expect(await device.hello()).toMatchObject({ type: 'welcome' })
    found = await device.read(sector)
  }
  expect(found).toEqual(disk.subarray(sector * 512, (sector + 1) * 512))
}

/** Reads on until this has happened. */
async function readUntil(done: Promise<void>): Promise<void> {
  let isDone = false
  const ended = done.finally(() => {
    isDone = true
  })
  while (!isDone) await readOn()
  await ended
}

test('a release reaches a running edge, which continues as it, while a device reads on', async () => {
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
  const folder = path.join(repository, 'targets/bootfarm-edge/0.4.0/x86_64')
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

test('an edge returns to an older release when that is ordered', async () => {
  await order(installedVersion)
  await readUntil(untilReported({ version: installedVersion, state: 'healthy' }, installedVersion))
  await order(null)
  await readUntil(untilReported({}, installedVersion))
})
