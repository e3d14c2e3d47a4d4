import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { damageBlocks } from '../lib/edge/damaged-blocks.ts'
import {
  bootWhole,
  holds,
  importImage,
  makeStore,
  pause,
  untilGiven,
  untilReady,
  vdiskNow,
  verify,
  writeImage,
} from '../lib/edge/held-versions.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

interface Place {
  edge: ControlledEdge
  /** A device of its site. */
  mac: string
}

const mib = 1 << 20
const imageSize = 8 * mib
/**
 * Between two reads of 64 KiB of a device that is to meet a fault in the middle: its disk takes 38 s. One whose boots
 * are the other edge's asks for several seconds before this one answers.
 */
const readStepMs = 300
const scratch = scratchDirectory()
let plane: ControlPlane
/** Two of one site, then two of the other. */
let places: [Place, Place, Place, Place]
let released: { id: string; image: string }

beforeAll(async () => {
  const objects = path.join(scratch.path, 'objects')
  mkdirSync(objects)
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'), undefined, { BOOTFARM_OBJECTS: objects })
  const start = (name: string, beside?: Pick<ControlledEdge, 'tenant' | 'person'>) =>
    ControlledEdge.start(plane, path.join(scratch.path, name), [], beside)
  const first = await start('first')
  const second = await start('second', first)
  const { tenant, person, api } = first
  const make = (procedure: string, input: object) => api.mutate<{ id: string }>(procedure, input)
  const site = await make('site.create', { farmId: tenant.farmId, name: 'Second', timeZone: 'UTC' })
  const collection = await make('collection.create', { siteId: site.id, name: 'Remote' })
  const macs = ['02:bf:00:00:0e:01', '02:bf:00:00:0e:02']
  for (const [index, mac] of macs.entries()) {
    const device = await make('device.create', { collectionId: collection.id, name: `remote-${index}`, mac })
    await api.mutate('device.update', { deviceId: device.id, revision: 1, vdiskId: tenant.vdiskId })
  }
  const there = { tenant: { ...tenant, siteId: site.id }, person }
  const third = await start('third', there)
  const fourth = await start('fourth', there)
  places = [
    { edge: first, mac: tenant.macs[0] ?? '' },
    { edge: second, mac: tenant.macs[1] ?? '' },
    { edge: third, mac: macs[0] ?? '' },
    { edge: fourth, mac: macs[1] ?? '' },
  ]
  for (const { edge } of places) await makeStore(edge)
})
afterAll(async () => {
  for (const { edge } of places ?? []) await edge.stop()
  await plane?.stop()
  scratch.remove()
})

/** Restarts an edge and switches devices on at it; resolves when each of them reads its disk. */
async function untilReading(edge: ControlledEdge, macs: string[]) {
  // Streams of before are gone, and what was read since the start would not be checked again.
  await edge.restart()
  await edge.process.waitFor(/of this site is heard/)
  const devices = macs.map((mac) => bootWhole(edge, mac, { image: released.image, stepMs: readStepMs }))
  while ((await edge.streamCount()) < macs.length) await aliveBeside(edge)
  const before = await edge.readCount()
  while ((await edge.readCount()) < before + 20) await aliveBeside(edge)
  return devices
}

async function aliveBeside(edge: ControlledEdge) {
  if (!edge.process.isRunning) throw new Error(edge.process.output)
  await pause()
}

test('what one edge imports is promoted once all four edges of two sites hold it, and boots at each', async () => {
  const [{ edge }] = places
  const image = writeImage(edge, 'released', imageSize)
  const made = await importImage(edge, 'released')
  while (!(await holds(edge, made.id))) await pause()
  const { revision: vdiskRevision } = await vdiskNow(edge)
  const promoted = await edge.api.mutate('version.promote', { versionId: made.id, vdiskRevision })
  expect(promoted).toMatchObject({ isWaiting: true })
  released = { id: made.id, image }
  await untilGiven(edge, places[0].mac, made.id)
  for (const place of places) expect(await holds(place.edge, made.id)).toBe(true)
  const devices = []
  for (const place of places) {
    await untilGiven(place.edge, place.mac, made.id)
    devices.push(bootWhole(place.edge, place.mac, { image }))
  }
  for (const device of devices) expect(await untilReady(device)).toMatchObject({ handOvers: 0, readBytes: imageSize })
})

test('devices of an edge that is killed continue at the other edge of its site, with every byte right', async () => {
  const [, , killed, left] = places
  await left.edge.process.waitFor(/of this site is heard/)
  const devices = await untilReading(killed.edge, [killed.mac, left.mac])
  killed.edge.process.kill('SIGKILL')
  await killed.edge.process.ended
  for (const device of devices) expect(await untilReady(device)).toMatchObject({ handOvers: 1 })
  // The site boots without it.
  expect(await untilReady(bootWhole(left.edge, killed.mac, { image: released.image }))).toMatchObject({ handOvers: 0 })
  await killed.edge.restart()
})

test('blocks that are damaged while a device reads its disk are repaired before it gets there', async () => {
  const [source, { edge, mac }] = places
  const [device] = await untilReading(edge, [mac])
  if (!device) throw new Error('no device')
  const offsets = [imageSize - 2 * mib, imageSize - mib, imageSize - 4096]
  const damaged = damageBlocks(edge, readFileSync(released.image), offsets)
  expect(device.isRunning).toBe(true)
  expect(await untilReady(device)).toMatchObject({ handOvers: 0, readBytes: imageSize })
  for (const { isRepaired } of damaged) expect(isRepaired()).toBe(true)
  const repairs = edge.process.output.split(`is repaired from edge ${source.edge.edgeId}`).length - 1
  expect(repairs).toBe(damaged.length)
  await verify(edge, released.id)
})
