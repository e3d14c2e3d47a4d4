import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import { releaseDue } from './release-due.ts'
import type { VdiskDetail } from './schema.ts'
import type { ChangedVersion, VersionPreview, VersionWithJobs } from './version-schema.ts'

const site = useTestSite('image_manager')
const root = Uint8Array.from({ length: 32 }, () => 1)
const minuteMs = 60_000

const vdisk = () => site().query<VdiskDetail>('vdisk.get', { vdiskId: site().tenant.vdiskId })
const change = async (path: string, input: object) => {
  const { revision: vdiskRevision } = await vdisk()
  return site().mutate<ChangedVersion>(path, { vdiskRevision, ...input })
}
const tryChange = async (path: string, input: object) => {
  const { revision: vdiskRevision } = await vdisk()
  return site().tryMutation(path, { vdiskRevision, ...input })
}
const bootedBy = async (index: number) => {
  const id = site().tenant.deviceIds[index] ?? ''
  return (await site().state()).devices.find((device) => device.id === id)?.versionId
}
const accesses = async () => Object.fromEntries((await vdisk()).versions.map(({ number, access }) => [number, access]))

async function addVersion(number: number, more: Record<string, unknown> = {}): Promise<string> {
  const { organizationId, vdiskId } = site().tenant
  const file = { sizeBytes: 512, diskPath: `a/${number}/disk.raw`, commandLine: `v=${number}` }
  const row = { organizationId, vdiskId, number, ...file, ...more }
  return (await site().api.db.vdiskVersion.create({ data: row, select: { id: true } })).id
}

async function putIntoStore(versionId: string): Promise<void> {
  const { organizationId } = site().tenant
  const where = { organizationId_id: { organizationId, id: versionId } }
  await site().api.db.vdiskVersion.update({ where, data: { manifestRoot: root, manifestCounter: 1 } })
  await site().api.db.edgeVersion.create({
    data: {
      organizationId,
      edgeId: site().edge.edgeId,
      versionId,
      state: 'present',
      root,
      ownBytes: 5,
      sharedBytes: 7,
      reclaimableBytes: 3,
      reportedAt: new Date(),
      scan: 1,
    },
  })
}

async function makeWriter(index = 0): Promise<string> {
  const { organizationId, deviceIds } = site().tenant
  const id = deviceIds[index] ?? ''
  const where = { organizationId_id: { organizationId, id } }
  await site().api.db.device.update({ where, data: { deviceType: 'maintenance' } })
  return id
}

describe('promote', () => {
  test('makes what is in test the default, tells who gets it before, and wakes edges', async () => {
    const versionId = await addVersion(2, { state: 'test' })
    const preview = await site().query<VersionPreview>('version.preview', { versionId, action: 'promote' })
    expect(preview).toMatchObject({
      refusals: [],
      before: { number: 1 },
      after: { number: 2 },
      changesBoot: true,
      changed: [{ fromNumber: 1, toNumber: 2, devices: { count: 6, names: ['pc-01', 'pc-02', 'pc-03'] } }],
    })
    const before = await site().state()
    expect(await change('version.promote', { versionId })).toMatchObject({
      name: 'Linux version 2',
      number: 2,
    })
    const after = await site().state()
    expect(after.counter).toBe(before.counter + 1)
    expect(new Set(after.devices.map((device) => device.versionId))).toEqual(new Set([versionId]))
    expect(await accesses()).toEqual({ 1: null, 2: 'default' })
    expect(await tryChange('version.promote', { versionId })).toMatchObject({
      status: 409,
      text: expect.stringContaining('Version 2 is the default already.'),
    })
  })

  test('of two at once one wins, and the other is told who was first', async () => {
    const versions = [await addVersion(2, { state: 'test' }), await addVersion(3, { state: 'test' })]
    const { revision: vdiskRevision } = await vdisk()
    const answers = await Promise.all(
      versions.map((versionId) => site().tryMutation('version.promote', { versionId, vdiskRevision })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(answers.find(({ status }) => status === 409)?.text).toContain('This vDisk was changed in the meantime')
    expect(Object.values(await accesses()).filter((access) => access === 'default')).toHaveLength(1)
  })

  test('at an instant: edges know it, test devices keep it, and the job only writes down what is so already', async () => {
    const { api, tenant } = site()
    const versionId = await addVersion(2, { state: 'test' })
    const where = {
      organizationId_id: { organizationId: tenant.organizationId, id: tenant.deviceIds[5] ?? '' },
    }
    await api.db.device.update({ where, data: { deviceType: 'test' } })
    const releaseAt = new Date(api.clock.now.getTime() + minuteMs).toISOString()
    await change('version.promote', { versionId, releaseAt })
    expect(await accesses()).toEqual({ 1: 'default', 2: 'pending' })
    expect((await vdisk()).pending).toEqual({ versionId, releaseAt })
    expect([await bootedBy(0), await bootedBy(5)]).toEqual([tenant.versionId, versionId])
    const third = await addVersion(3, { state: 'test' })
    expect((await tryChange('version.promote', { versionId: third, releaseAt })).text).toContain(
      'Version 2 is to be released at',
    )
    await releaseDue({ db: api.serverDb, clock: api.clock.read })
    expect(await accesses()).toMatchObject({ 2: 'pending' })
    api.clock.advance(minuteMs)
    expect(await bootedBy(0)).toBe(versionId)
    await Promise.all([1, 2].map(() => releaseDue({ db: api.serverDb, clock: api.clock.read })))
    expect(await vdisk()).toMatchObject({ pending: null, defaultVersionId: versionId })
    const owner = await signInAs(api, tenant.organizationId, 'owner')
    expect(owner).toBeTruthy()
    const entries = await api.db.auditEntry.findMany({
      where: { action: 'version.release', objectId: tenant.vdiskId },
    })
    expect(entries).toHaveLength(1)
  })

  test('taken back, the version is in test again', async () => {
    const versionId = await addVersion(2, { state: 'test' })
    const { clock } = site().api
    const releaseAt = new Date(clock.now.getTime() + minuteMs).toISOString()
    await change('version.promote', { versionId, releaseAt })
    const { vdiskId } = site().tenant
    const seen = { vdiskId, revision: (await vdisk()).revision }
    await site().mutate('version.cancelRelease', seen)
    expect(await accesses()).toEqual({ 1: 'default', 2: 'test' })
    clock.advance(minuteMs)
    expect(await bootedBy(0)).toBe(site().tenant.versionId)
    const again = await site().tryMutation('version.cancelRelease', {
      ...seen,
      revision: (await vdisk()).revision,
    })
    expect([again.status, again.text]).toEqual([409, expect.stringContaining('No release is to come')])
  })

  test.each([
    ['in the past', -1, 400],
    ['in two years', 2 * 366 * 86_400_000, 400],
  ])('a release %s is refused', async (_when, aheadMs, status) => {
    const versionId = await addVersion(2, { state: 'test' })
    const releaseAt = new Date(site().api.clock.now.getTime() + aheadMs).toISOString()
    expect((await tryChange('version.promote', { versionId, releaseAt })).status).toBe(status)
  })
})

describe('revert and override', () => {
  test('a revert goes to any earlier release, with its kernel and command line, and what runs goes on', async () => {
    const { tenant, mac } = site()
    const { vdiskId, versionId } = tenant
    const second = await addVersion(2)
    await site().report(bootWith({ id: randomUUID(), mac, vdiskId, versionId: second }))
    const preview = await site().query<VersionPreview>('version.preview', { versionId, action: 'revert' })
    expect(preview).toMatchObject({
      after: { number: 1 },
      changesBoot: true,
      running: [{ versionId: second, number: 2, devices: { count: 1, names: ['pc-01'] } }],
    })
    await change('version.revert', { versionId })
    const state = await site().state()
    expect(state.vdisks[0]).toMatchObject({
      defaultVersionId: versionId,
      versions: [{ number: 1, commandLine: 'quiet' }, { number: 2 }],
    })
    expect(await accesses()).toEqual({ 1: 'default', 2: null })
    expect((await vdisk()).versions.find(({ id }) => id === second)?.running.count).toBe(1)
    expect((await tryChange('version.revert', { versionId })).status).toBe(409)
    const third = await addVersion(3, { state: 'test' })
    expect((await tryChange('version.revert', { versionId: third })).text).toContain('never released')
  })

  test('an override holds over promotions until it is taken back', async () => {
    const { versionId, vdiskId } = site().tenant
    await addVersion(2)
    await change('version.override', { versionId })
    expect(await accesses()).toEqual({ 1: 'override', 2: 'default' })
    const third = await addVersion(3, { state: 'test' })
    await change('version.promote', { versionId: third })
    expect(await bootedBy(0)).toBe(versionId)
    expect((await tryChange('version.override', { versionId })).text).toContain('is the override already')
    const held = await site().tryMutation('vdisk.removeVersion', { versionId })
    expect([held.status, held.text]).toEqual([409, expect.stringContaining('the override of Linux')])
    const { revision } = await vdisk()
    await site().mutate('version.clearOverride', { vdiskId, revision })
    expect(await bootedBy(0)).toBe(third)
    expect((await site().tryMutation('version.clearOverride', { vdiskId, revision: revision + 1 })).status).toBe(409)
  })

  test('a version registered after a revert is the default again', async () => {
    const { versionId, vdiskId } = site().tenant
    await addVersion(2)
    await change('version.revert', { versionId })
    const files = { diskPath: 'a/3/disk.raw', sizeBytes: 512 }
    const { id } = await site().mutate<{ id: string }>('vdisk.registerVersion', { vdiskId, ...files })
    expect(await bootedBy(0)).toBe(id)
  })
})

describe('maintenance', () => {
  beforeEach(() => putIntoStore(site().tenant.versionId))

  test('one device gets the next version to write, and nobody else does', async () => {
    const deviceId = await makeWriter()
    const { versionId } = site().tenant
    const made = await change('version.startMaintenance', { versionId, deviceId })
    expect(made).toMatchObject({ name: 'Linux version 2', number: 2 })
    expect([await bootedBy(0), await bootedBy(1)]).toEqual([made.id, versionId])
    expect(await vdisk()).toMatchObject({
      maintenance: { versionId: made.id, device: { id: deviceId, name: 'pc-01' } },
    })
    const state = await site().state()
    expect(state.vdisks[0]?.versions[1]).toMatchObject({ layerAboveVersionId: versionId })
  })

  test('of two begun at once one wins, and the other hears who writes', async () => {
    const deviceId = await makeWriter()
    const { versionId } = site().tenant
    const { revision: vdiskRevision } = await vdisk()
    const begin = () => site().tryMutation('version.startMaintenance', { versionId, deviceId, vdiskRevision })
    const answers = await Promise.all([begin(), begin()])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const later = await tryChange('version.startMaintenance', { versionId, deviceId })
    expect(later.text).toContain('Version 2 is in maintenance already: pc-01 writes it.')
  })

  test.each([
    ['a production device', 'is a production device: make it a maintenance device first', 409],
    ['a device of another vDisk', 'does not boot this vDisk', 400],
    ['no device', 'There is no such device', 404],
  ])('%s does not write', async (which, text, status) => {
    const { versionId, organizationId, farmId } = site().tenant
    let deviceId = which === 'no device' ? randomUUID() : (site().tenant.deviceIds[1] ?? '')
    if (which === 'a device of another vDisk') {
      deviceId = await makeWriter(1)
      const other = await site().api.db.vdisk.create({ data: { organizationId, farmId, name: 'Other' } })
      const where = { organizationId_id: { organizationId, id: deviceId } }
      await site().api.db.device.update({ where, data: { vdiskId: other.id } })
    }
    const answer = await tryChange('version.startMaintenance', { versionId, deviceId })
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text)])
  })

  test('a plain file is not maintained, merged or sealed, and says what to do', async () => {
    const versionId = await addVersion(2)
    const deviceId = await makeWriter()
    const begun = await tryChange('version.startMaintenance', { versionId, deviceId })
    expect(begun.text).toContain('import it into the edges’ store as a version first')
    expect((await tryChange('version.merge', { versionId, into: 'base' })).status).toBe(409)
    expect((await site().tryMutation('version.seal', { versionId, revision: 1 })).text).toContain('not in maintenance')
  })

  test('what runs from it is not sealed; discarded, it is gone with its number', async () => {
    const deviceId = await makeWriter()
    const { versionId, vdiskId } = site().tenant
    const made = await change('version.startMaintenance', { versionId, deviceId })
    await site().report(bootWith({ id: randomUUID(), mac: site().mac, vdiskId, versionId: made.id }))
    const running = await site().tryMutation('version.seal', { versionId: made.id, revision: made.revision })
    expect([running.status, running.text]).toEqual([409, expect.stringContaining('pc-01 still runs from version 2')])
    const report = bootWith({
      id: randomUUID(),
      mac: site().mac,
      vdiskId,
      versionId,
      startedUnixMs: site().api.clock.now.getTime(),
    })
    await site().report(report)
    await site().mutate('version.discardMaintenance', { versionId: made.id, revision: made.revision })
    expect(await accesses()).toEqual({ 1: 'default' })
    expect((await change('version.startMaintenance', { versionId, deviceId })).number).toBe(3)
  })
})

describe('merge and delete', () => {
  test('a merge is asked of each edge that holds the version, and is nobody’s until it is done', async () => {
    const { versionId } = site().tenant
    await putIntoStore(versionId)
    const second = await addVersion(2, { parentVersionId: versionId })
    await putIntoStore(second)
    const merged = await change('version.merge', { versionId: second, into: 'update' })
    expect(merged).toMatchObject({ number: 3, jobIds: [expect.any(String)] })
    const view = (await vdisk()).versions.find(({ id }) => id === merged.id)
    expect(view).toMatchObject({ access: null, sealedAt: null, parentVersionId: versionId })
    expect((await site().state()).storeJobs).toMatchObject([{ kind: 'merge', parentVersionId: versionId, number: 3 }])
    expect((await tryChange('version.promote', { versionId: merged.id })).text).toContain('is being made')
    const held = await site().query<VersionPreview>('version.preview', {
      versionId: second,
      action: 'delete',
    })
    expect(held.refusals).toContainEqual('the unfinished store job merge')
    expect(held).toMatchObject({
      childNumbers: [],
      edges: [{ ownBytes: 5, sharedBytes: 7, reclaimableBytes: 3 }],
    })
    const parent = await site().query<VersionPreview>('version.preview', { versionId, action: 'delete' })
    expect(parent.childNumbers).toEqual([3, 2])
  })

  test('cancelled before it began it leaves nothing, and gives its number back', async () => {
    const { versionId } = site().tenant
    await putIntoStore(versionId)
    const merged = (await change('version.merge', { versionId, into: 'base' })) as VersionWithJobs
    const [jobId] = merged.jobIds
    expect(await site().mutate('storeJob.cancel', { jobId })).toMatchObject({ state: 'cancelled' })
    expect(await accesses()).toEqual({ 1: 'default' })
    expect(await site().state()).not.toHaveProperty('storeJobs')
    expect((await site().tryMutation('storeJob.cancel', { jobId })).text).toContain('is already cancelled')
    expect((await change('version.merge', { versionId, into: 'base' })).number).toBe(2)
  })

  test('once the trash is emptied, stores are told to forget it', async () => {
    const versionId = await addVersion(2, { state: 'test' })
    await putIntoStore(versionId)
    const { deletionId } = await site().mutate<{ deletionId: string }>('vdisk.removeVersion', { versionId })
    expect(await site().state()).not.toHaveProperty('storeJobs')
    const owner = await signInAs(site().api, site().tenant.organizationId, 'owner')
    expect((await site().tryMutation('trash.purge', { deletionId }, owner)).status).toBe(200)
    expect((await site().state()).storeJobs).toMatchObject([{ kind: 'delete', versionId }])
  })
})

test('what may be read only may not be changed, and what is absent is absent', async () => {
  const { versionId } = site().tenant
  const operator = await signInAs(site().api, site().tenant.organizationId, 'operator')
  const input = { versionId, vdiskRevision: 1 }
  expect((await site().tryMutation('version.revert', input, operator)).status).toBe(403)
  expect((await site().tryMutation('version.revert', input, '')).status).toBe(401)
  expect((await site().tryMutation('version.revert', { ...input, versionId: randomUUID() })).status).toBe(404)
  expect((await site().tryMutation('version.revert', { versionId })).status).toBe(400)
})

test('a write cache is set with its limit, and said to edges', async () => {
  const { vdiskId } = site().tenant
  const settings = { class: 'edge_persistent', limitBytes: 2 ** 30, full: 'read_only' }
  await site().mutate('vdisk.updateWriteCache', { vdiskId, revision: 1, ...settings })
  expect((await vdisk()).writeCache).toEqual(settings)
  expect((await site().state()).vdisks[0]?.writeCache).toEqual(settings)
  const stale = await site().tryMutation('vdisk.updateWriteCache', { vdiskId, revision: 1, ...settings })
  expect(stale.status).toBe(409)
  const tiny = { vdiskId, revision: 2, ...settings, limitBytes: 1 }
  expect((await site().tryMutation('vdisk.updateWriteCache', tiny)).status).toBe(400)
})

test('what does not fit into memory may go to a disk of the device: said to edges as a class of its own, and audited', async () => {
  const { vdiskId } = site().tenant
  const settings = { class: 'device_ram_local_disk', limitBytes: 2 ** 34, full: 'stop' }
  await site().mutate('vdisk.updateWriteCache', { vdiskId, revision: 1, ...settings })
  expect((await vdisk()).writeCache).toEqual(settings)
  expect((await site().state()).vdisks[0]?.writeCache).toEqual(settings)
  const other = { vdiskId, revision: 2, ...settings, class: 'local_disk' }
  expect((await site().tryMutation('vdisk.updateWriteCache', other)).status).toBe(400)
  const entries = await site().api.db.auditEntry.findMany({ where: { objectId: vdiskId } })
  expect(JSON.stringify(entries.map(({ after }) => after))).toContain('device_ram_local_disk')
})
