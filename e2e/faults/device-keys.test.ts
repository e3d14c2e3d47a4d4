import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { required } from '../lib/control-plane/api-client.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { TpmKey } from '../lib/device/tpm-key.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
const devices: StreamDevice[] = []
let edge: ControlledEdge

interface DeviceView {
  keyLabel: string | null
  claimedKey: string | null
  key: { known: string | null; revision: number; decidedBy: string | null }
}

/** A real edge, enrolled at the real API, whose devices have private images. */
beforeAll(async () => {
  const databaseUrl = readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim()
  const plane = { databaseUrl, apiUrl: required('BOOTFARM_API_URL'), webUrl: required('BOOTFARM_WEB_URL') }
  edge = await ControlledEdge.start(plane, path.join(scratch.path, 'edge'))
  const { vdiskId } = edge.tenant
  const { revision } = await edge.api.query<{ revision: number }>('vdisk.get', { vdiskId })
  await edge.api.mutate('vdisk.updateWriteCache', {
    vdiskId,
    revision,
    class: 'private',
    limitBytes: null,
    full: 'stop',
  })
  await untilStated(0, ({ home }) => home !== undefined)
})
afterEach(() => {
  for (const device of devices.splice(0)) device.close()
})
afterAll(async () => {
  await edge?.stop()
  scratch.remove()
})

type StatedDevice = NonNullable<Awaited<ReturnType<ControlledEdge['stateInForce']>>>['devices'][number]

/** Resolves once the state that the edge obeys says so of the device. */
async function untilStated(index: number, is: (device: StatedDevice) => boolean): Promise<void> {
  for (;;) {
    const state = await edge.stateInForce()
    const device = state?.devices.find(({ mac }) => mac === edge.tenant.macs[index])
    if (device && is(device)) return
    await aMoment()
  }
}

/** Resolves with the device's page, once it shows this label. */
async function untilLabelled(index: number, label: string, claimed?: TpmKey): Promise<DeviceView> {
  for (;;) {
    const view = await edge.api.query<DeviceView>('device.get', { deviceId: edge.tenant.deviceIds[index] })
    if (view.keyLabel === label && (!claimed || view.claimedKey === claimed.fingerprint)) return view
    await aMoment()
  }
}

async function aMoment(): Promise<void> {
  if (!edge.process.isRunning) throw new Error(edge.process.output)
  await new Promise((resolve) => setTimeout(resolve, 20))
}

/** A machine with this MAC address starts; resolves with its stream, and with what its HELLO is answered. */
async function boot(index: number, key?: TpmKey) {
  const device = await StreamDevice.boot(edge.httpUrl, edge.tenant.macs[index] ?? '', { key })
  devices.push(device)
  const answer = await device.hello()
  return { device, answer: typeof answer === 'string' ? answer : answer.type }
}

const base64 = (key: TpmKey) => Buffer.from(key.fingerprint, 'hex').toString('base64')
const isKnown = (key: TpmKey) => (device: StatedDevice) => device.key === base64(key)

test('a changed key is an alarm and opens nothing private until a person approves it, and the old key nothing from then on', async () => {
  const [own, other] = [new TpmKey(), new TpmKey()]
  const first = await boot(0, own)
  expect(first.answer).toBe('welcome')
  expect(await first.device.write(3, 0x77)).toBe('done')
  expect(await first.device.flush()).toBe('done')
  expect((await untilLabelled(0, 'key_known')).key).toMatchObject({ known: own.fingerprint, decidedBy: null })
  await untilStated(0, isKnown(own))

  expect((await boot(0, other)).answer).toBe('identity_refused')
  const alarm = await untilLabelled(0, 'key_changed', other)
  expect(alarm.key).toMatchObject({ known: own.fingerprint, revision: 0 })
  // A machine that leaves out the signature gets no more, and replaces nothing of the alarm.
  expect((await boot(0)).answer).not.toBe('welcome')
  await untilLabelled(0, 'key_changed', other)

  const decide = (claimed: TpmKey) =>
    edge.api.mutate('device.decideKey', {
      deviceId: edge.tenant.deviceIds[0],
      decision: 'approve',
      keyRevision: alarm.key.revision,
      claimedKey: claimed.fingerprint,
    })
  await expect(decide(new TpmKey())).rejects.toThrow(/has proved another key since/)
  await decide(other)
  await untilStated(0, isKnown(other))
  const approved = await boot(0, other)
  expect(approved.answer).toBe('welcome')
  expect(await approved.device.read(3)).toEqual(Buffer.alloc(512, 0x77))
  await untilLabelled(0, 'key_known')

  expect((await boot(0, own)).answer).toBe('identity_refused')
  await untilLabelled(0, 'key_changed', own)
})

test('where keys are approved, devices wait, and a collection of them is approved at once', async () => {
  const { collectionId } = edge.tenant
  interface Collection {
    revision: number
    keys: { waitingCount: number; waitingUntil: string | null }
  }
  const collection = () => edge.api.query<Collection>('collection.get', { collectionId })
  const { revision } = await collection()
  await edge.api.mutate('collection.update', { collectionId, revision, keyLearn: 'approve', keyWithout: 'shared' })
  await untilStated(1, ({ keyPolicy }) => keyPolicy !== undefined)
  const keys = [1, 2].map((index) => ({ index, key: new TpmKey() }))
  for (const { index, key } of keys) {
    expect((await boot(index, key)).answer).toBe('identity_refused')
    await untilLabelled(index, 'key_waits', key)
  }
  const { waitingCount, waitingUntil } = (await collection()).keys
  expect(waitingCount).toBe(keys.length)
  await edge.api.mutate('device.approveKeys', { collectionId, claimedUntil: waitingUntil, waitingCount })
  for (const { index, key } of keys) {
    await untilStated(index, isKnown(key))
    expect((await boot(index, key)).answer).toBe('welcome')
    await untilLabelled(index, 'key_known')
  }
})
