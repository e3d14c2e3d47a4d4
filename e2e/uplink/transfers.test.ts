import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge, type SimulatedBoot } from '../lib/edge/controlled-edge.ts'
import {
  holds,
  importImage,
  makeStore,
  pause,
  storeOf,
  untilHeld,
  vdiskNow,
  verify,
  writeImage,
} from '../lib/edge/held-versions.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

interface Job {
  state: string
  kind: string
  edge: { id: string }
  version: { id: string } | null
  untrusted: { message: string | null }
}

const mib = 1 << 20
const imageSize = 10 * mib
/** The rest of the first image is text, which the store packs. */
const noiseSize = 8 * mib
const wholeReadSize = 64 << 10
const scratch = scratchDirectory()
let plane: ControlPlane
/** Two of one site, and one of another. */
let own: ControlledEdge
let beside: ControlledEdge
let remote: ControlledEdge
let remoteMac: string
/** The version that the first test imports, and its bytes. */
let everywhere: { id: string; image: string }

const all = () => [own, beside, remote]

beforeAll(async () => {
  const objects = path.join(scratch.path, 'objects')
  mkdirSync(objects)
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'), undefined, { BOOTFARM_OBJECTS: objects })
  own = await ControlledEdge.start(plane, path.join(scratch.path, 'own'))
  const { tenant, person, api } = own
  beside = await ControlledEdge.start(plane, path.join(scratch.path, 'beside'), [], own)
  const make = (procedure: string, input: object) => api.mutate<{ id: string }>(procedure, input)
  const site = await make('site.create', { farmId: tenant.farmId, name: 'Second', timeZone: 'UTC' })
  const collection = await make('collection.create', { siteId: site.id, name: 'Remote' })
  remoteMac = '02:bf:00:00:0e:01'
  const device = await make('device.create', { collectionId: collection.id, name: 'remote-1', mac: remoteMac })
  await api.mutate('device.update', { deviceId: device.id, revision: 1, vdiskId: tenant.vdiskId })
  const there = { tenant: { ...tenant, siteId: site.id }, person }
  remote = await ControlledEdge.start(plane, path.join(scratch.path, 'remote'), [], there)
  for (const edge of all()) await makeStore(edge)
})
afterAll(async () => {
  for (const edge of all()) await edge?.stop()
  await plane?.stop()
  scratch.remove()
})

async function jobOf(kind: string, edge: ControlledEdge, versionId: string): Promise<Job | undefined> {
  const { items } = await own.api.query<{ items: Job[] }>('storeJob.list', { limit: 100 })
  return items.find((job) => job.kind === kind && job.edge.id === edge.edgeId && job.version?.id === versionId)
}

/** Whole differences of an edge, and those that it gets, with their sizes. */
function differences(edge: ControlledEdge): Map<string, number> {
  const folder = path.join(storeOf(edge), 'differences')
  if (!existsSync(folder)) return new Map()
  return new Map(readdirSync(folder).map((name) => [name, statSync(path.join(folder, name)).size]))
}

/** Reads the whole disk; each byte must be the image's. */
async function bootAt(edge: ControlledEdge, mac: string, versionId: string, image: string): Promise<void> {
  const isGiven = async () => {
    const device = (await edge.stateInForce())?.devices.find((one) => one.mac === mac)
    return device?.versionId === versionId
  }
  while (!(await isGiven())) await pause()
  const reads = Array.from({ length: imageSize / wholeReadSize }, (_, at) => `0,${at * wholeReadSize},${wholeReadSize}`)
  const trace = path.join(scratch.path, 'whole.csv')
  writeFileSync(trace, `time_ms,offset,length\n${reads.join('\n')}\n`)
  const device = edge.bootDevice(mac, trace, ['--speed', '0', '--verify', image])
  expect(await device.ended, device.output).toBe(0)
  expect(device.jsonLines<SimulatedBoot>().find((line) => line.mac === mac)).toMatchObject({ outcome: 'ready' })
}

test('a version that one edge imports reaches all edges, each line once, and boots everywhere', async () => {
  const image = writeImage(own, 'first', noiseSize)
  const line = (number: number) => `line ${number} of a text that is packed\n`
  const text = Array.from({ length: imageSize / 32 }, (_, number) => line(number)).join('')
  appendFileSync(image, text.slice(0, imageSize - noiseSize))
  const before = all().map(({ uplink }) => uplink.passedBytes)
  const made = await importImage(own, 'first')
  await untilHeld(made.id, all())
  const passed = all().map(({ uplink }, index) => uplink.passedBytes - (before[index] ?? 0))
  // The other site gets it from the control plane; within the site nothing of it comes over the line.
  expect(passed[0]).toBeLessThan(2 * mib)
  expect(passed[1]).toBeLessThan(2 * mib)
  expect(passed[2]).toBeGreaterThan(noiseSize)
  expect(passed[2]).toBeLessThan(imageSize + 2 * mib)
  const { revision: vdiskRevision } = await vdiskNow(own)
  await own.api.mutate('version.promote', { versionId: made.id, vdiskRevision })
  const { macs } = own.tenant
  await bootAt(own, macs[0] ?? '', made.id, image)
  await bootAt(beside, macs[1] ?? '', made.id, image)
  await bootAt(remote, remoteMac, made.id, image)
  everywhere = { id: made.id, image }
})

test('blocks and packed units that are damaged on disk are repaired from the other edge while a device reads them', async () => {
  // What was read since the start is not checked again.
  await own.restart()
  const image = readFileSync(everywhere.image)
  const folder = path.join(storeOf(own), 'extents')
  const placeOf = (offset: number) => {
    const block = image.subarray(offset, offset + 4096)
    for (const name of readdirSync(folder)) {
      const file = path.join(folder, name)
      const at = readFileSync(file).indexOf(block)
      if (at >= 0) return { file, at, block }
    }
    throw new Error(`no file has the block at ${offset}`)
  }
  const damage = (file: string, at: number, size: number) => {
    const fd = openSync(file, 'r+')
    writeSync(fd, randomBytes(size), 0, size, at)
    closeSync(fd)
  }
  const damaged = [0, 3 * mib, 3 * mib + 4096, noiseSize - 4096].map(placeOf)
  for (const { file, at } of damaged) damage(file, at + 1000, 100)
  // The units of the text are behind the noise, at least one in each of these places: what fills a unit's last sector
  // is shorter.
  const { file, at } = placeOf(noiseSize - 8192)
  const unitsAt = at + 8192
  const unitsSize = statSync(file).size - unitsAt
  expect(unitsSize).toBeLessThan((imageSize - noiseSize) / 2)
  const places = [0, 1, 2].map((third) => unitsAt + Math.floor((third * unitsSize) / 3))
  for (const place of places) damage(file, place, 600)
  await expect(verify(own, everywhere.id)).rejects.toThrow()
  await bootAt(own, own.tenant.macs[0] ?? '', everywhere.id, everywhere.image)
  for (const { file, at, block } of damaged)
    expect(
      readFileSync(file)
        .subarray(at, at + block.length)
        .equals(block),
    ).toBe(true)
  const repaired = (what: string) =>
    own.process.output.match(new RegExp(`the damaged ${what} at byte \\d+ is repaired from edge ${beside.edgeId}`, 'g'))
  expect(repaired('block')).toHaveLength(damaged.length)
  expect(repaired('packed unit')?.length).toBeGreaterThanOrEqual(places.length)
  await verify(own, everywhere.id)
})

test('a fetch goes on where it was after the edge that sends, and the one that gets, were killed', async () => {
  writeImage(own, 'second', imageSize)
  const made = await importImage(own, 'second')
  const part = () => [...differences(beside)].find(([name]) => name.endsWith('.part'))
  const isInMiddle = () => (part()?.[1] ?? 0) >= 4 * mib
  while (!isInMiddle()) await pause()
  own.process.kill('SIGKILL')
  await own.process.ended
  const [name = '', held = 0] = part() ?? []
  expect(held).toBeLessThan(imageSize)
  await beside.restart()
  // What was there stays.
  expect(statSync(path.join(storeOf(beside), 'differences', name)).size).toBeGreaterThanOrEqual(held)
  await own.restart()
  await untilHeld(made.id, [beside, remote])
  await verify(beside, made.id)
  await verify(remote, made.id)
})

test('an edge that sends wrong bytes is named, and nothing is made of them', async () => {
  writeImage(own, 'third', imageSize)
  beside.process.kill('SIGKILL')
  await beside.process.ended
  const known = new Set(differences(own).keys())
  const made = await importImage(own, 'third')
  while ((await jobOf('pack', own, made.id))?.state !== 'done') await pause()
  const list = [...differences(own).keys()].find((name) => name.endsWith('.pieces') && !known.has(name)) ?? ''
  const file = path.join(storeOf(own), 'differences', list)
  const bytes = readFileSync(file)
  bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40)
  writeFileSync(file, bytes)
  await beside.restart()
  const ended = async () => {
    const job = await jobOf('fetch', beside, made.id)
    return job?.state === 'failed' || job?.state === 'done' ? job : undefined
  }
  let job = await ended()
  while (!job) {
    if (!beside.process.isRunning) throw new Error(beside.process.output)
    await pause()
    job = await ended()
  }
  expect(job.untrusted.message).toContain(`edge ${own.edgeId} sent a wrong list of pieces`)
  expect(job.state).toBe('failed')
  expect(await holds(beside, made.id)).toBe(false)
})
