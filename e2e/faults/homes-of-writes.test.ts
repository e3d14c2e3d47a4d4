import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { required } from '../lib/control-plane/api-client.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
const devices: StreamDevice[] = []
let edges: [ControlledEdge, ControlledEdge]
let home: ControlledEdge
let other: ControlledEdge
let databaseUrl: string

/** Two edges of one site, and a control plane that wants device writes kept. */
beforeAll(async () => {
  databaseUrl = readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim()
  const [apiUrl, webUrl] = [required('BOOTFARM_API_URL'), required('BOOTFARM_WEB_URL')]
  const plane = { databaseUrl, apiUrl, webUrl }
  const first = await ControlledEdge.start(plane, path.join(scratch.path, 'first'))
  const second = await ControlledEdge.start(plane, path.join(scratch.path, 'second'), [], first)
  edges = [first, second]
  const { vdiskId } = first.tenant
  const { revision } = await first.api.query<{ revision: number }>('vdisk.get', { vdiskId })
  const writeCache = { class: 'private', limitBytes: null, full: 'stop' }
  await first.api.mutate('vdisk.updateWriteCache', { vdiskId, revision, ...writeCache })
  const [homeId] = await Promise.all(edges.map((edge) => untilWriteOwner(edge)))
  ;[home, other] = homeId === first.edgeId ? [first, second] : [second, first]
})
afterEach(() => {
  for (const device of devices.splice(0)) device.close()
})
afterAll(async () => {
  for (const edge of edges ?? []) await edge.stop()
  scratch.remove()
})

/** Resolves with the write owner of a device in this edge's state, once it `is` the wanted one. */
async function untilWriteOwner(
  edge: ControlledEdge,
  is: (id: string | undefined) => boolean = (id) => id !== undefined,
  mac = edge.tenant.macs[0],
) {
  for (;;) {
    const { devices: known = [], homeEdges = [] } = (await edge.stateInForce()) ?? {}
    const index = known.find((device) => device.mac === mac)?.home
    const id = index === undefined ? undefined : homeEdges[index]?.id
    if (is(id)) return id
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function boot(edge: ControlledEdge, mac = edge.tenant.macs[0]): Promise<StreamDevice> {
  const device = await StreamDevice.boot(edge.httpUrl, mac ?? '')
  devices.push(device)
  return device
}

async function expectRefused(edge: ControlledEdge, mac = edge.tenant.macs[0]) {
  expect(await edge.scriptOf(mac ?? '')).toContain('its writes are kept at the edge')
}

interface Job {
  state: string
  untrusted: { message: string | null }
}

async function ended(jobId: string): Promise<Job> {
  for (;;) {
    const job = await home.api.query<Job>('storeJob.get', { jobId })
    if (job.state !== 'queued' && job.state !== 'running') return job
    if (!home.process.isRunning) throw new Error(home.process.output)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('a device writes at the write owner that both edges know, and finds its writes there again, even while the API is unreachable', async () => {
  const first = await boot(home)
  expect(await first.hello()).toMatchObject({ type: 'welcome' })
  expect(await first.write(3, 0x77)).toBe('done')
  await expectRefused(other)
  for (const edge of edges) {
    await edge.uplink.cut()
    await edge.restart()
  }
  await expectRefused(other)
  const second = await boot(home)
  expect(await second.hello()).toMatchObject({ type: 'welcome' })
  expect(await second.read(3)).toEqual(Buffer.alloc(512, 0x77))
  for (const edge of edges) await edge.uplink.heal()
})

test('the write owner releases a device that has written nothing, and no other', async () => {
  const [wrote, idle] = home.tenant.deviceIds as [string, string]
  const jobOf = (deviceId: string) =>
    home.api.mutate<{ jobId: string }>('device.moveHome', { deviceId, edgeId: other.edgeId, giveUp: false })
  const homeOf = async (deviceId: string) =>
    (await home.api.query<{ home: { edge: { id: string } } }>('device.get', { deviceId })).home.edge.id
  // The control plane forgets what the device's boot reported; its edge still knows it.
  const db = createDb(databaseUrl)
  const { organizationId } = home.tenant
  await db.device.updateMany({
    where: { organizationId, id: { in: [wrote, idle] } },
    data: { layerClass: null, layerEdgeId: null, lastBootId: null, homeEdgeId: home.edgeId },
  })
  await db.$disconnect()
  const refused = await ended((await jobOf(wrote)).jobId)
  expect(refused).toMatchObject({ state: 'failed' })
  expect(refused.untrusted.message).toContain('it still keeps writes of the device')
  expect(await homeOf(wrote)).toBe(home.edgeId)
  expect(await ended((await jobOf(idle)).jobId)).toMatchObject({ state: 'done' })
  expect(await homeOf(idle)).toBe(other.edgeId)
  await untilWriteOwner(other, (id) => id === other.edgeId, home.tenant.macs[1])
  const device = await boot(other, other.tenant.macs[1])
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  expect(await device.write(3, 0x78)).toBe('done')
  await expectRefused(home, home.tenant.macs[1])
})
