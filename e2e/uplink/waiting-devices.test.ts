import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { EdgePair } from '../lib/edge/edge-pair.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
let plane: ControlPlane
let pair: EdgePair
let devices: RunningProcess | undefined

interface Wait {
  reason: string
  edge: { id: string }
  asked: { id: string } | null
  sentence: string
}
interface Device {
  waitsFor: Wait | null
  lastBoot: { id: string; outcome: string | null } | null
}

beforeAll(async () => {
  plane = await ControlPlane.start(scratch.path)
  pair = await EdgePair.start(plane, scratch.path, 'edge')
})
afterEach(async () => {
  pair.own.process.kill('SIGCONT')
  devices?.kill('SIGKILL')
  await devices?.ended
})
afterAll(async () => {
  await pair?.stop()
  await plane?.stop()
  scratch.remove()
})

const device = () => pair.own.api.query<Device>('device.get', { deviceId: pair.own.tenant.deviceIds[0] })

/** Returns the device once it `is` as wanted. */
async function deviceWhen(is: (device: Device) => boolean): Promise<Device> {
  let found: Device | undefined
  await pair.until(async () => {
    found = await device()
    return is(found)
  })
  if (!found) throw new Error('there is no device')
  return found
}

const isAsked = ({ waitsFor }: Device) => waitsFor?.reason === 'asked_another_edge'

/**
 * Checks the reports on the pages of the device and its boot and in the lists while the device's own edge is stopped,
 * and that they disappear afterwards.
 */
async function expectReported(): Promise<void> {
  const { own, other } = pair
  own.process.kill('SIGSTOP')
  const { waitsFor, lastBoot } = await deviceWhen(isAsked)
  expect(waitsFor).toMatchObject({ edge: { id: own.edgeId }, asked: { id: other.edgeId } })
  const boot = await own.api.query<{ waitsFor: Wait; edgeId: string }>('boot.get', { bootId: lastBoot?.id })
  expect(boot).toMatchObject({ edgeId: own.edgeId, waitsFor })
  for (const list of ['device.list', 'boot.list']) {
    const { items } = await own.api.query<{ items: { waitsFor: Wait | null }[] }>(list, {})
    expect(items.flatMap((item) => item.waitsFor ?? [])).toMatchObject([{ edge: { id: own.edgeId } }])
  }
  // The other edge reports nothing more about the boot: it does not own it.
  expect(other.printedBoots().size).toBe(0)
  own.process.kill('SIGCONT')
  await deviceWhen((found) => found.waitsFor === null)
}

test('when the edge of a booting device is stopped, the other edge reports that the device waits, until it continues', async () => {
  const readBefore = await pair.own.readCount()
  devices = pair.boot()
  await deviceWhen(({ lastBoot }) => lastBoot !== null && lastBoot.outcome === null)
  await pair.until(async () => {
    const { lastBoot } = await device()
    const { phases } = await pair.own.api.query<{ phases: { name: string }[] }>('boot.get', {
      bootId: lastBoot?.id,
    })
    return phases.some(({ name }) => name === 'stage2')
  })
  await pair.untilRead(readBefore)
  await expectReported()
  expect(await devices.ended).toBe(0)
  const [result] = devices.jsonLines<{ outcome: string; handOvers: number }>()
  expect(result).toMatchObject({ outcome: 'ready', handOvers: 0 })
  await deviceWhen(({ lastBoot }) => lastBoot?.outcome === 'ready')
})

test('the same holds for a running device whose boot is over', async () => {
  const before = (await device()).lastBoot?.id
  devices = pair.boot('--waves', '--wave-size', '1', '--wave-interval-s', '3600')
  await deviceWhen(({ lastBoot }) => lastBoot?.id !== before && lastBoot?.outcome === 'ready')
  await expectReported()
  expect((await device()).lastBoot?.outcome).toBe('ready')
})
