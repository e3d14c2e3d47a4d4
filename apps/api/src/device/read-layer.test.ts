import { randomUUID } from 'node:crypto'
import type { StoreJobReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith, guestWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { VersionPreview } from '../vdisk/version-schema.ts'
import type { DeviceDetail } from './schema.ts'

const site = useTestSite('owner')
const deviceId = () => site().deviceId
const layer = async () => (await site().query<DeviceDetail>('device.get', { deviceId: deviceId() })).layer
const drop = (chosen = 'private') => ({ deviceId: deviceId(), class: chosen })

/** Reports a boot of the device that is over, or that has just started to run. */
async function boot(chosen: 'private' | 'edge' | 'edge_persistent', { isRunning = false } = {}) {
  const { vdiskId, versionId, macs } = site().tenant
  const writeCache = { usedBytes: 5000, sizeBytes: 100_000, atUs: 9e6, class: chosen }
  const guest = guestWith({ writeCache })
  const failed = { kind: 'failed', phase: 'stage2', cause: 'guest_reported_failure' } as const
  await site().report(
    bootWith({
      id: randomUUID(),
      mac: macs[0] ?? '',
      vdiskId,
      versionId,
      guest,
      startedUnixMs: site().api.clock.now.getTime() - 60_000,
      ...(isRunning ? {} : { outcome: failed }),
    }),
  )
}

async function end(jobId: string, state: 'done' | 'failed') {
  const job: StoreJobReport = { id: jobId, state, progressBytes: 0, totalBytes: 0 }
  const facts = { id: randomUUID(), publicKey: Buffer.alloc(32, 9).toString('base64'), format: 1 }
  const body = JSON.stringify({ store: facts, jobs: [job] })
  const answer = await site().edge.send({ method: 'POST', path: '/edge/v1/store', body })
  expect(answer).toMatchObject({ status: 200, body: { settledJobs: [jobId] } })
}

test('what an edge keeps of a device is known by the device’s boots, with what it stands on', async () => {
  expect(await layer()).toBeNull()
  await boot('edge')
  expect(await layer()).toBeNull()
  await boot('private')
  const { vdiskId, versionId } = site().tenant
  const kept = {
    class: 'private',
    usedBytes: 5000,
    edge: { id: site().edge.edgeId },
    dropJobId: null,
    version: { id: versionId, number: 1, vdiskId, vdiskName: 'Linux' },
  }
  expect(await layer()).toMatchObject({ ...kept, currentNumber: 1, releasesBehind: 0 })
  const files = { sizeBytes: 1_048_576, diskPath: 'linux/2.raw', commandLine: 'quiet' }
  await site().mutate('vdisk.registerVersion', { vdiskId, ...files })
  await site().mutate('vdisk.registerVersion', { vdiskId, ...files })
  // A boot of another class reports nothing about the writes that the edge still keeps.
  await boot('edge')
  expect(await layer()).toMatchObject({ ...kept, currentNumber: 3, releasesBehind: 2 })
})

test('a version that an image of a device’s own lies above is held, and shown to be', async () => {
  await boot('private')
  const { vdiskId, versionId } = site().tenant
  const files = { sizeBytes: 1_048_576, diskPath: 'linux/2.raw', commandLine: 'quiet' }
  await site().mutate('vdisk.registerVersion', { vdiskId, ...files })
  const preview = await site().query<VersionPreview>('version.preview', { versionId, action: 'delete' })
  expect(preview.holders).toContainEqual(expect.stringMatching(/private image of pc-01/))
  const refused = await site().tryMutation('vdisk.removeVersion', { versionId })
  expect(refused.status).toBe(409)
  const { jobId } = await site().mutate<{ jobId: string }>('device.dropWrites', drop())
  await end(jobId, 'done')
  await site().mutate('vdisk.removeVersion', { versionId })
})

test('it is dropped by the edge that keeps it, once, and stays known until the edge has done it', async () => {
  await boot('private')
  const { jobId } = await site().mutate<{ jobId: string }>('device.dropWrites', drop())
  const order = { id: jobId, kind: 'drop_layer', deviceId: deviceId(), layerClass: 'private' }
  expect((await site().state()).storeJobs).toMatchObject([order])
  expect(await site().query('storeJob.get', { jobId })).toMatchObject({
    kind: 'drop_layer',
    device: { id: deviceId(), name: 'pc-01' },
  })
  expect(await layer()).toMatchObject({ dropJobId: jobId })
  expect((await site().tryMutation('device.dropWrites', drop())).status).toBe(409)
  await end(jobId, 'failed')
  expect(await layer()).toMatchObject({ class: 'private', dropJobId: null })
  const again = await site().mutate<{ jobId: string }>('device.dropWrites', drop())
  await end(again.jobId, 'done')
  expect(await layer()).toBeNull()
})

test('nothing is dropped of a device that runs, of another class, or of one that keeps nothing', async () => {
  expect((await site().tryMutation('device.dropWrites', drop())).status).toBe(409)
  await boot('edge_persistent')
  expect((await site().tryMutation('device.dropWrites', drop('private'))).status).toBe(409)
  expect((await site().tryMutation('device.dropWrites', drop('edge'))).status).toBe(400)
  await boot('edge_persistent', { isRunning: true })
  const running = await site().tryMutation('device.dropWrites', drop('edge_persistent'))
  expect(running).toMatchObject({ status: 409, text: expect.stringMatching(/Shut the device down/) })
})
