import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '../lib/control-plane/api-client.ts'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import type { DeviceResult } from '../lib/device/simulated-devices.ts'
import type { PrintedBoot } from '../lib/edge/controlled-edge.ts'
import { bootsOf, readReportLog } from '../lib/edge/edge-data.ts'
import { EdgePair } from '../lib/edge/edge-pair.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** Ticket keys change every half of this period. */
const periodDays = 30
/** In the first half of a period the previous key still opens tickets, but seals none. */
const daysToNextPeriod = periodDays - ((Date.now() / 86_400_000) % periodDays) + periodDays / 4
const scratch = scratchDirectory()
/** Settings of the API; they apply from its next start. */
const settings: Record<string, string> = {}
let plane: ControlPlane
let pair: EdgePair

beforeAll(async () => {
  plane = await ControlPlane.start(scratch.path, undefined, settings)
  pair = await EdgePair.start(plane, scratch.path)
})
afterAll(async () => {
  await pair?.stop()
  await plane?.stop()
  scratch.remove()
})

/** The API restarts with its clock this far ahead: it alone decides which keys seal tickets. */
async function advanceApiClock(days: number): Promise<void> {
  const code = `const Real = Date, ahead = Math.round(${days} * 86400000)
    globalThis.Date = class Date extends Real {
      constructor(...given) { given.length > 0 ? super(...given) : super(Real.now() + ahead) }
      static now() { return Real.now() + ahead }
    }`
  settings.NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code)}`
  await plane.killApi()
}

/** Returns the keys with which an edge seals and opens tickets. */
async function keysOf(edge = pair.other): Promise<string[]> {
  let keys: string[] | undefined
  await pair.until(async () => {
    keys = (await edge.stateInForce())?.siteEdges?.ticketKeys
    return keys !== undefined
  })
  return keys ?? []
}

/** Waits until the other edge's keys for opening tickets differ from these. */
async function newKeys(before: string[]): Promise<string[]> {
  let keys = before
  await pair.until(async () => {
    keys = await keysOf()
    return String(keys) !== String(before)
  })
  return keys
}

async function resultOf(device: RunningProcess): Promise<DeviceResult> {
  expect(await device.ended, device.output).toBe(0)
  const [result] = device.jsonLines<DeviceResult>()
  if (!result) throw new Error(device.output)
  return result
}

/** Returns boots that have reached their disk, read from the log of the edge that the control plane cannot hear. */
const reading = () =>
  bootsOf(readReportLog(pair.own.data))
    .filter(({ phases }) => phases.some(({ name }) => name === 'stage2'))
    .map(({ id }) => id)

/** Boots of earlier tests: an edge may report them again long after their devices are done. */
const begunBefore = new Set<string>()

/** Switches the device on; resolves when its own edge, which the control plane cannot hear, serves its disk. */
async function untilReading(): Promise<RunningProcess> {
  const note = () =>
    reading()
      .filter((id) => !begunBefore.has(id))
      .map((id) => begunBefore.add(id)).length
  note()
  const readBefore = await pair.own.readCount()
  const device = pair.boot()
  await pair.until(async () => note() > 0)
  await pair.untilRead(readBefore)
  return device
}

interface Boot {
  id: string
  outcome: string | null
  edgeId: string
  edgeName: string
  handOver: { edgeId: string; edgeName: string; fromEdgeName: string; count: number } | null
  phases: { name: string }[]
}

test('the keys of a site lie sealed on its edges’ disks', async () => {
  for (const edge of [pair.own, pair.other]) {
    const [ticketKey = ''] = await keysOf(edge)
    expect(Buffer.from(ticketKey, 'base64')).toHaveLength(32)
    const text = readFileSync(path.join(edge.data, 'state.json'), 'utf8')
    expect(text).toContain('sealed')
    expect(text).not.toContain(ticketKey)
    expect(text).not.toContain((await edge.stateInForce())?.siteEdges?.key)
  }
})

test('a boot whose edge is killed fails over to the other one, and is one boot that names both', async () => {
  const { own, other } = pair
  const boots = async () => (await own.api.query<{ items: Boot[] }>('boot.list', {})).items
  const get = (bootId: string) => own.api.query<Boot>('boot.get', { bootId })
  const readBefore = await own.readCount()
  const device = pair.boot()
  await pair.until(async () => {
    const [first] = await boots()
    return first?.phases.some(({ name }) => name === 'stage2') ?? false
  })
  await pair.untilRead(readBefore)
  own.process.kill('SIGKILL')
  expect(await resultOf(device)).toMatchObject({ outcome: 'ready', handOvers: 1 })
  await pair.until(async () => (await boots())[0]?.outcome === 'ready')
  // Reports that the killed edge had not sent arrive now, and change nothing.
  await own.restart()
  await pair.until(async () => own.hasReported() && other.hasReported())
  const [boot, ...more] = await boots()
  expect(more).toEqual([])
  begunBefore.add(boot?.id ?? '')
  const [begun, wentOn] = await Promise.all([own.query<{ name: string }>(), other.query<{ name: string }>()])
  const { outcome, edgeId, edgeName, handOver, phases } = await get(boot?.id ?? '')
  expect({ outcome, edgeId, edgeName }).toEqual({
    outcome: 'ready',
    edgeId: own.edgeId,
    edgeName: begun.name,
  })
  expect(handOver).toMatchObject({
    edgeId: other.edgeId,
    edgeName: wentOn.name,
    fromEdgeName: begun.name,
    count: 1,
  })
  expect(phases.map(({ name }) => name)).toEqual(['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready'])
})

test('after a change of keys an edge that knows the new keys still accepts an old ticket', async () => {
  const { own, other } = pair
  const before = await keysOf()
  const [sealing] = await keysOf(own)
  // Its device's ticket is an old one, like that of an edge that was away.
  await own.uplink.cut()
  await advanceApiClock(daysToNextPeriod)
  expect((await newKeys(before))[1]).toBe(sealing)
  const earlier = other.printedBoots()
  const device = await untilReading()
  own.process.kill('SIGSTOP')
  // Restored also on failure, so that the following tests report their own findings.
  const result = await resultOf(device).finally(() => own.process.kill('SIGCONT'))
  expect(result).toMatchObject({ outcome: 'ready', handOvers: 1 })
  const isTaken = (boot: PrintedBoot) =>
    !earlier.has(boot.id) && boot.outcome.kind === 'ready' && boot.handOver?.fromEdgeId === own.edgeId
  await pair.until(async () => [...other.printedBoots().values()].some(isTaken))
})

test('an expired ticket is refused: the device continues when its own edge does', async () => {
  const { own, other } = pair
  const [sealing] = await keysOf(own)
  const taken = other.printedBoots().size
  const known = await keysOf()
  await advanceApiClock(daysToNextPeriod + periodDays)
  expect(await newKeys(known)).not.toContain(sealing)
  const device = await untilReading()
  const refusals = async () => Number((await other.metrics()).match(/reason="stream_token_refused"\} (\d+)/)?.[1] ?? 0)
  const before = await refusals()
  own.process.kill('SIGSTOP')
  await pair.until(async () => (await refusals()) > before).finally(() => own.process.kill('SIGCONT'))
  expect(await resultOf(device)).toMatchObject({ outcome: 'ready', handOvers: 0 })
  expect(other.printedBoots().size).toBe(taken)
})

test('once its own edge has the new keys too, its tickets are accepted again', async () => {
  const { own } = pair
  await own.uplink.heal()
  // The edge asks the control plane at once, and not at its next retry.
  await own.restart()
  await own.process.waitFor(/of this site is heard/)
  const keys = await keysOf()
  await pair.until(async () => String(await keysOf(own)) === String(keys) && own.hasReported())
  const readBefore = await own.readCount()
  const next = pair.boot()
  const { email, password } = own.person
  const api = await ApiClient.signIn(plane.webUrl, email, password)
  await pair.until(async () => {
    const { items } = await api.query<{ items: Boot[] }>('boot.list', { outcome: 'booting' })
    return items.some(({ phases }) => phases.some(({ name }) => name === 'stage2'))
  })
  await pair.untilRead(readBefore)
  own.process.kill('SIGKILL')
  expect(await resultOf(next)).toMatchObject({ outcome: 'ready', handOvers: 1 })
})
