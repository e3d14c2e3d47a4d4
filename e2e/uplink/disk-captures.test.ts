import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { StoreEdge } from '../lib/edge/store-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Capture {
  state: string
  sizeBytes: number | null
  version: { id: string; number: number } | null
  reason: string | null
}
interface Device {
  revision: number
  deviceType: string
  ownVdisk: { id: string } | null
}

/** The device's own disk: a sector of data in its second MiB, and one at its end. */
const diskSize = (2 << 20) + 4096
const written = [
  [2048, 0x11],
  [diskSize / 512 - 1, 0x22],
] as const
const scratch = scratchDirectory()
const devices: StreamDevice[] = []
let plane: ControlPlane
let site: StoreEdge
let bootVersionId: string

beforeAll(async () => {
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'))
  site = await StoreEdge.start(plane, scratch.path)
  const { edgeId, tenant } = site.edge
  const made = await site.edge.api.mutate<{ id: string; jobIds: string[] }>('version.import', {
    vdiskId: tenant.vdiskId,
    edgeId,
    sourcePath: site.imagePath,
  })
  bootVersionId = made.id
  await until(async () => {
    const job = await site.edge.api.query<{ state: string }>('storeJob.get', { jobId: made.jobIds[0] })
    if (job.state === 'failed') throw new Error(JSON.stringify(job))
    return job.state === 'done'
  })
})
afterEach(() => {
  for (const device of devices.splice(0)) device.close()
})
afterAll(async () => {
  await site?.edge.stop()
  await plane?.stop()
  scratch.remove()
})

async function until<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await ask()
    if (found) return found
    if (!site.edge.process.isRunning) throw new Error(site.edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const deviceId = () => site.edge.tenant.deviceIds[0] ?? ''
const device = () => site.edge.api.query<Device>('device.get', { deviceId: deviceId() })
const capture = async () =>
  (await site.edge.api.query<{ capture: Capture | null }>('diskCapture.get', { deviceId: deviceId() })).capture
const untilState = (state: string) =>
  until(async () => {
    const now = await capture()
    if (now?.state === 'failed' && state !== 'failed') throw new Error(now.reason ?? '')
    return now?.state === state && now
  })

/** Refused until the edge has reported what it holds. A device that is off may still be thought to run. */
const start = (name: string) =>
  until(async () => {
    const { revision } = await device()
    const input = {
      deviceId: deviceId(),
      revision,
      bootVersionId,
      farmId: site.edge.tenant.farmId,
      name,
      whileRunning: true,
    }
    return site.edge.api.mutate<Capture>('diskCapture.start', input).catch((error: Error) => {
      if (!error.message.includes('has not reported')) throw error
      return undefined
    })
  })

/** The device boots what it is to write, once its edge knows. */
async function boot(): Promise<StreamDevice> {
  const { version } = await untilState('waiting')
  await until(async () => {
    const mac = site.macOf(0)
    const state = await site.edge.stateInForce()
    return state?.devices.some((one) => one.mac === mac && one.versionId === version?.id && one.writes)
  })
  const booted = await StreamDevice.boot(site.edge.httpUrl, site.macOf(0))
  devices.push(booted)
  return booted
}
/** Where it reports by HTTP how its boot went. */
const report = async ({ script }: StreamDevice, outcome: string, body = '') => {
  const url = script.match(/ bootfarm\.report=(\S+)/)?.[1]
  expect((await fetch(`${url}/${outcome}`, { method: 'POST', body })).status).toBe(204)
}

async function write(booted: StreamDevice): Promise<void> {
  for (const [sector, byte] of written) expect(await booted.write(sector, byte)).toBe('done')
  expect(await booted.flush()).toBe('done')
}

/** Its first boot refuses the empty disk, and names the size of its own. */
async function nameSize(): Promise<void> {
  const first = await boot()
  expect(first.script).toContain('bootfarm.capture=auto')
  await report(first, 'failed', `no_capture sda has ${diskSize} bytes, the version 1048576`)
  await until(async () => (await capture())?.sizeBytes === diskSize)
}

test('a disk becomes a version with the same bytes, over kills of its edge and of the API, and the device is as before', async () => {
  const before = await device()
  await start('Captured')
  await nameSize()
  const second = await boot()
  expect(await second.hello()).toMatchObject({ type: 'welcome' })
  await untilState('copying')
  await write(second)
  await site.edge.restart()
  await plane.killApi()
  // It resumes where it was: its writes are kept.
  expect(await second.hello()).toMatchObject({ type: 'welcome' })
  expect(await second.read(written[0][0])).toEqual(Buffer.alloc(512, written[0][1]))
  await report(second, 'ready')
  await untilState('sealing')
  // The system of this disk has no kernel that its version could boot with: that is said, and nothing is lost.
  await untilState('asking')
  await site.edge.api.mutate('diskCapture.answer', { deviceId: deviceId(), bootFiles: 'none' })
  const { version } = await untilState('done')
  expect(await device()).toMatchObject({ deviceType: before.deviceType, ownVdisk: before.ownVdisk })

  const file = path.join(scratch.path, 'exported.raw')
  const args = ['vdisk', 'export', file, '--store', path.join(site.edge.data, 'store'), '--version', version?.id ?? '']
  const exported = new RunningProcess(edgeProgram, args)
  expect(await exported.ended, exported.output).toBe(0)
  const expected = Buffer.alloc(diskSize)
  for (const [sector, byte] of written) expected.fill(byte, sector * 512, (sector + 1) * 512)
  expect(readFileSync(file).equals(expected)).toBe(true)
  await until(async () => site.layers().length === 0)
})

test('a capture that is cancelled while the device copies leaves nothing', async () => {
  const before = await device()
  await start('Cancelled')
  await nameSize()
  const second = await boot()
  expect(await second.hello()).toMatchObject({ type: 'welcome' })
  await write(second)
  await untilState('copying')
  await site.edge.api.mutate('diskCapture.cancel', { deviceId: deviceId() })
  expect(await device()).toMatchObject({ deviceType: before.deviceType, ownVdisk: before.ownVdisk })
  expect(await capture()).toMatchObject({ state: 'undoing' })
  await report(second, 'failed', 'no_disk switched off by hand')
  expect(await untilState('cancelled')).toMatchObject({ version: null, reason: null })
  await until(async () => site.layers().length === 0)
})
