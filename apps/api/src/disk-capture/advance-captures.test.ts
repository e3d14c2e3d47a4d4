import { randomUUID } from 'node:crypto'
import type { BootReport, StoreJobOrder, StoreJobReport, StoreMessage } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { startTestApi } from '../../test/test-api.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { VdiskDetail } from '../vdisk/schema.ts'
import { advanceCaptures } from './advance-captures.ts'
import type { CaptureView } from './schema.ts'

const site = useTestSite('admin')
const diskSize = 64 * 1024 ** 2
const abilities = ['verify', 'gc', 'import', 'import_empty', 'seal', 'delete']
const rootOf = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const store = { id: randomUUID(), publicKey: rootOf(9), format: 1 }
const sizes = { state: 'present' as const, ownBytes: 5, sharedBytes: 7, reclaimableBytes: 3 }
let scan = 0
let startedUnixMs = 0
/** The device's own settings, which each capture restores. */
let own: object

beforeEach(async () => {
  const { organizationId, versionId } = site().tenant
  scan = 0
  startedUnixMs = site().api.clock.now.getTime()
  await site().api.db.vdiskVersion.update({
    where: { organizationId_id: { organizationId, id: versionId } },
    data: {
      manifestRoot: Uint8Array.from(Buffer.alloc(32, 1)),
      manifestCounter: 1,
      kernelSha256: 'ab'.repeat(32),
      commandLine: 'console=ttyS0 bootfarm.capture=sdz',
    },
  })
  await site().edge.heartbeat({ storeJobKinds: abilities })
  await hold({ versionId })
  own = await settings()
})

async function say(message: Partial<StoreMessage>): Promise<void> {
  const body = JSON.stringify({ store, jobs: [], ...message })
  const answer = await site().edge.send({ method: 'POST', path: '/edge/v1/store', body })
  expect([answer.status, answer.body]).toEqual([200, expect.anything()])
}
const hold = (...versions: { versionId: string; isLayer?: boolean; isWritten?: boolean }[]) =>
  say({ inventory: { scan: ++scan, isLast: true, versions: versions.map((one) => Object.assign({}, sizes, one)) } })

const settings = () =>
  site().api.db.device.findFirstOrThrow({
    where: { id: site().deviceId },
    select: { vdiskId: true, deviceType: true, bootMenuChoice: true, bootMenuId: true },
  })
const device = () => site().query<{ revision: number }>('device.get', { deviceId: site().deviceId })
const vdisk = (vdiskId: string | undefined) => site().query<VdiskDetail>('vdisk.get', { vdiskId })
const capture = async () =>
  (await site().query<{ capture: CaptureView | null }>('diskCapture.get', { deviceId: site().deviceId })).capture
const startInput = async (more: object = {}) => ({
  deviceId: site().deviceId,
  revision: (await device()).revision,
  bootVersionId: site().tenant.versionId,
  farmId: site().tenant.farmId,
  name: 'Captured',
  ...more,
})
const start = async (more: object = {}) => site().mutate<CaptureView>('diskCapture.start', await startInput(more))
const refusal = async (more: object = {}) => {
  const { status, text } = await site().tryMutation('diskCapture.start', await startInput(more))
  return [status, text]
}
const cancel = () => site().tryMutation('diskCapture.cancel', { deviceId: site().deviceId })
const answer = (more: object) => site().tryMutation('diskCapture.answer', { deviceId: site().deviceId, ...more })
/** One run of the job, in this or another process, a second later: the log has an order then. */
function advance({ serverDb: db, clock } = site().api): Promise<void> {
  clock.advance(1000)
  return advanceCaptures({ db, clock: clock.read })
}
const jobs = async (): Promise<StoreJobOrder[]> => (await site().state()).storeJobs ?? []

/** The edge ends its first job of this kind. */
async function end(kind: StoreJobOrder['kind'], more: Partial<StoreJobReport> = {}): Promise<StoreJobOrder> {
  const order = (await jobs()).find((one) => one.kind === kind)
  if (!order) throw new Error(`no ${kind} among ${JSON.stringify(await jobs())}`)
  const sizeBytes = 'sourceSizeBytes' in order && order.sourceSizeBytes ? Number(order.sourceSizeBytes) : diskSize
  const made = { versionId: order.versionId ?? '', root: rootOf(3), counter: 4, sizeBytes }
  const isMaking = kind === 'import' || kind === 'seal'
  const done = { id: order.id, state: 'done' as const, progressBytes: 9, totalBytes: 9, ...(isMaking ? { made } : {}) }
  await say({ jobs: [Object.assign(done, more)] })
  return order
}

/** The device boots the version that it is to write, a minute after its last boot. */
async function boot(more: Partial<BootReport> = {}): Promise<BootReport> {
  startedUnixMs += 60_000
  site().api.clock.now = new Date(startedUnixMs + 30_000)
  await site().edge.heartbeat({ storeJobKinds: abilities })
  const now = await capture()
  const ids = { id: randomUUID(), mac: site().mac, vdiskId: now?.vdisk?.id ?? '', versionId: now?.version?.id ?? '' }
  const report = Object.assign(bootWith(ids), { startedUnixMs }, more)
  await site().report(report)
  return report
}
const failed = (text: string): Partial<BootReport> => ({
  outcome: { kind: 'failed', phase: 'stage2', cause: 'guest_reported_failure', text },
})
/** As an edge reports a machine that copies. */
const copying = (usedBytes: number, sizeBytes = diskSize): Partial<BootReport> => ({
  outcome: undefined,
  guest: { kernelStartUs: 1, steps: [], writeCache: { usedBytes, sizeBytes, atUs: 10 } },
})

/** A capture whose device is to boot. */
async function waiting(more: object = {}): Promise<CaptureView> {
  await start({ sizeBytes: diskSize, ...more })
  await end('import')
  await advance()
  const now = await capture()
  expect(now).toMatchObject({ state: 'waiting' })
  return now as CaptureView
}

/** The device has switched itself off. */
const leave = async () =>
  hold(
    { versionId: (await capture())?.version?.id ?? '', isLayer: true, isWritten: false },
    { versionId: site().tenant.versionId },
  )

/** Nothing is left but the reason. */
async function expectUndone(state: 'failed' | 'cancelled', reason: string | null): Promise<void> {
  await advance()
  await advance()
  expect(await capture()).toMatchObject({
    state,
    version: null,
    vdisk: null,
    reason: reason && expect.stringContaining(reason),
  })
  expect(await settings()).toEqual(own)
  expect(
    await site().api.db.vdiskVersion.count({ where: { organizationId: site().tenant.organizationId, isBlank: true } }),
  ).toBe(0)
  const made = { organizationId: site().tenant.organizationId, name: 'Captured', deletionId: null }
  expect(await site().api.db.vdisk.count({ where: made })).toBe(0)
}

test('a disk of unknown size becomes a version of a new vDisk, whichever process takes the steps', async () => {
  const begun = await start({ note: 'from the shelf' })
  expect(begun).toMatchObject({ state: 'preparing', sizeBytes: null, disk: 'auto', vdisk: { name: 'Captured' } })
  const first = await end('import')
  expect(first).toMatchObject({ bootVersionId: site().tenant.versionId, sourceSizeBytes: 1024 ** 2 })
  expect((await site().state()).vdisks).toHaveLength(1)
  await advance()
  expect(await capture()).toMatchObject({ state: 'waiting', version: { number: 2 } })
  const state = await site().state()
  expect(state.devices[0]).toMatchObject({
    writes: true,
    deviceType: 'maintenance',
    versionId: (await capture())?.version?.id,
  })
  const written = state.vdisks.flatMap(({ versions }) => versions).find(({ id }) => id === state.devices[0]?.versionId)
  expect(written).toMatchObject({ commandLine: 'console=ttyS0 bootfarm.capture=auto' })

  // The first boot says how large the disk is; the next one finds a version of that size.
  await boot(failed(`no_capture: sda has ${diskSize} bytes, the version 1048576`))
  await advance()
  expect(await capture()).toMatchObject({ state: 'preparing', sizeBytes: diskSize })
  await end('import')
  const beside = await startTestApi({ beside: site().api })
  await Promise.all([advance(), advance(beside), advance(), advance(beside)])
  await beside.close()
  expect(await capture()).toMatchObject({ state: 'waiting', version: { number: 4 } })

  const copied = await boot(copying(diskSize / 4))
  await advance()
  expect(await capture()).toMatchObject({ state: 'copying', copied: { bytes: diskSize / 4, bytesPerSecond: null } })
  site().api.clock.advance(1000)
  await site().report({ ...copied, ...copying(diskSize / 2), revision: 2 })
  await advance()
  expect(await capture()).toMatchObject({
    copied: { bytes: diskSize / 2, totalBytes: diskSize, bytesPerSecond: diskSize / 8 },
  })
  await site().report({ ...bootWith(copied), outcome: { kind: 'ready' }, startedUnixMs, revision: 3 })
  await advance()
  expect(await capture()).toMatchObject({ state: 'copying', copied: { bytes: diskSize } })
  await leave()
  await advance()
  expect(await capture()).toMatchObject({ state: 'sealing' })
  await end('seal')
  await advance()

  const done = await capture()
  expect(done).toMatchObject({ state: 'done', reason: null, version: { number: 4 }, endedAt: expect.any(String) })
  expect(await settings()).toEqual(own)
  expect((await vdisk(done?.vdisk?.id)).versions).toMatchObject([
    { id: done?.version?.id, access: 'test', note: 'from the shelf' },
  ])
  const events = await site().api.db.webhookEvent.findMany({
    where: { organizationId: site().tenant.organizationId, type: 'disk_capture.ended' },
  })
  expect(events.map(({ payload }) => payload)).toMatchObject([{ data: { outcome: 'done', versionNumber: 4 } }])
  expect(await site().api.db.webhookEvent.count({ where: { type: 'write_cache.filling' } })).toBe(0)
  const states = await site().api.db.auditEntry.findMany({
    where: { objectId: site().deviceId, action: { startsWith: 'diskCapture.' } },
    orderBy: { at: 'asc' },
  })
  const told = states.flatMap(({ after }) =>
    after && Object.hasOwn(after as object, 'diskCapture') ? [Reflect.get(after as object, 'diskCapture')] : [],
  )
  expect(told).toEqual(['preparing', 'waiting', 'preparing', 'waiting', 'copying', 'sealing', 'done'])
})

test('of several disks a person names one, and of nothing else', async () => {
  await waiting()
  await boot(failed('no_capture: name one of 2 disks: sda nvme0n1'))
  await advance()
  expect(await capture()).toMatchObject({ state: 'asking', question: 'disk', disks: ['sda', 'nvme0n1'] })
  expect((await answer({ disk: 'sdb' })).text).toContain('Name one of sda, nvme0n1')
  expect((await answer({ bootFiles: 'none' })).text).toContain('asks for the disk now')
  expect((await answer({ disk: '/dev/nvme0n1' })).status).toBe(200)
  expect((await answer({ disk: 'sda' })).text).toContain('asks for nothing now')
  await end('import')
  await advance()
  const { devices, vdisks } = await site().state()
  const booted = vdisks.flatMap(({ versions }) => versions).find(({ id }) => id === devices[0]?.versionId)
  expect(booted?.commandLine).toBe('console=ttyS0 bootfarm.capture=nvme0n1')
})

test('a version that cannot be sealed with the kernel of its disk is kept, and sealed without one', async () => {
  await waiting()
  await boot()
  await advance()
  await leave()
  await advance()
  await end('seal', { state: 'failed', message: 'the file system was not unmounted', made: undefined })
  await advance()
  expect(await capture()).toMatchObject({
    state: 'asking',
    question: 'boot_files',
    untrusted: { remark: 'the file system was not unmounted' },
  })
  expect((await answer({ bootFiles: 'none' })).status).toBe(200)
  expect(await end('seal')).toMatchObject({ bootFiles: 'none' })
  await advance()
  expect(await capture()).toMatchObject({ state: 'done' })
})

test('a device that never boots, or cannot read its disk, ends it with the reason, and everything is undone', async () => {
  await waiting({ waitHours: 2 })
  site().api.clock.advance(2 * 3_600_000 + 1000)
  await site().edge.heartbeat({ storeJobKinds: abilities })
  await advance()
  await expectUndone('failed', 'has not booted for the capture within 2 hours')
  startedUnixMs = site().api.clock.now.getTime()
  await waiting()
  await boot(failed('no_capture: the disk cannot be read at byte 4096'))
  await advance()
  await expectUndone('failed', 'could not capture its disk: the disk cannot be read at byte 4096')
  const told = await site().api.db.webhookEvent.findMany({
    where: { organizationId: site().tenant.organizationId, type: 'disk_capture.ended' },
  })
  expect(told.map(({ payload }) => payload)).toMatchObject([
    { data: { outcome: 'failed' } },
    { data: { outcome: 'failed' } },
  ])
})

test('an empty disk that cannot be made ends it', async () => {
  await start()
  await end('import', { state: 'failed', message: 'the store is full', made: undefined })
  await advance()
  await expectUndone('failed', 'The empty disk could not be made: the store is full')
})

test('it is cancelled at each stage; a device that copies is ordered to switch off first', async () => {
  expect((await cancel()).text).toContain('No disk of this device is being captured')
  await start()
  expect((await cancel()).status).toBe(200)
  await expectUndone('cancelled', null)
  await waiting()
  expect((await cancel()).status).toBe(200)
  await expectUndone('cancelled', null)

  startedUnixMs = site().api.clock.now.getTime()
  await waiting()
  await boot(copying(diskSize / 2))
  await advance()
  expect((await cancel()).status).toBe(200)
  expect(await settings()).toEqual(own)
  expect((await site().state()).powerOrders).toMatchObject([{ deviceId: site().deviceId, order: 'power_off' }])
  await advance()
  expect(await capture()).toMatchObject({ state: 'undoing', version: { number: 2 } })
  expect((await cancel()).text).toContain('being undone already')
  await boot(failed('no_disk: the edge is gone'))
  await expectUndone('cancelled', null)
})

test('an existing vDisk gets the version, its test devices never the empty disk, and people’s changes are left alone', async () => {
  const { vdiskId, organizationId, deviceIds } = site().tenant
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: deviceIds[1] ?? '' } },
    data: { deviceType: 'test' },
  })
  const booted = async () => (await site().state()).devices.find(({ id }) => id === deviceIds[1])?.versionId
  await start({ vdiskId, farmId: null, name: null, sizeBytes: diskSize })
  await end('import')
  expect(await booted()).toBe(site().tenant.versionId)
  const { revision, versions } = await vdisk(vdiskId)
  const blank = versions.find(({ number }) => number === 2)
  const promoted = await site().tryMutation('version.promote', { versionId: blank?.id, vdiskRevision: revision })
  expect([promoted.status, promoted.text]).toEqual([409, expect.stringContaining('is an empty disk')])
  await advance()
  expect(await booted()).toBe(site().tenant.versionId)
  // Somebody needs the device for something else.
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: site().deviceId } },
    data: { deviceType: 'test' },
  })
  await advance()
  await advance()
  await advance()
  expect(await capture()).toMatchObject({ state: 'failed', reason: expect.stringContaining('changed the type') })
  expect(await settings()).toMatchObject({ deviceType: 'test' })
  expect((await vdisk(vdiskId)).versions).toHaveLength(1)
})

test('it is refused with what to do, before anything is changed', async () => {
  const { vdiskId, organizationId } = site().tenant
  const { revision } = await device()
  expect(await refusal({ revision: revision + 1 })).toEqual([409, expect.stringContaining('changed in the meantime')])
  expect(await refusal({ disk: '../sda' })).toEqual([400, expect.stringContaining('such as sda or nvme0n1')])
  expect(await refusal({ vdiskId })).toEqual([400, expect.stringContaining('say either a vDisk')])
  expect(await refusal({ bootVersionId: randomUUID() })).toEqual([
    400,
    expect.stringContaining('sealed one of the device’s farm'),
  ])
  expect(await refusal({ edgeId: randomUUID() })).toEqual([400, expect.stringContaining('edge of the device’s site')])
  await hold()
  expect(await refusal()).toEqual([409, expect.stringContaining('Name a version that it holds')])
  await hold({ versionId: site().tenant.versionId })
  await site().edge.heartbeat({ storeJobKinds: ['import', 'seal'] })
  expect(await refusal()).toEqual([
    409,
    expect.stringContaining('cannot make empty disks, which a capture begins with. Update it.'),
  ])
  await site().edge.heartbeat({ storeJobKinds: abilities })
  const { edgeId } = site().edge
  await site().api.db.edgeVersion.deleteMany({ where: { organizationId } })
  await site().api.db.edge.updateMany({ where: { organizationId, id: edgeId }, data: { storeReportedAt: null } })
  expect(await refusal()).toEqual([409, expect.stringContaining('has reported no store')])
  await hold({ versionId: site().tenant.versionId })
  await site().report(bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs }))
  expect(await refusal()).toEqual([409, expect.stringContaining('is running. Its disk is captured at its next boot')])
  expect(await settings()).toEqual(own)
  await start({ whileRunning: true })
  expect(await refusal({ name: 'Other', whileRunning: true })).toEqual([
    409,
    expect.stringContaining('is being captured already'),
  ])
})
