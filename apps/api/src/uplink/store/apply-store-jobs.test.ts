import { randomUUID } from 'node:crypto'
import type { StoredVersion, StoreJobReport, StoreMessage } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { bootWith, type EdgeClient } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { signInAs } from '../../../test/test-tenant.ts'
import type { StoreJobView } from '../../store-job/schema.ts'
import type { VdiskDetail } from '../../vdisk/schema.ts'
import type { VersionWithJobs } from '../../vdisk/version-schema.ts'

const site = useTestSite('image_manager')
const rootOf = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const store = { id: randomUUID(), publicKey: rootOf(9), format: 1 }
const sizes = { ownBytes: 5, sharedBytes: 7, reclaimableBytes: 3 }

async function say(message: Partial<StoreMessage>, edge: EdgeClient = site().edge): Promise<string[]> {
  const body = JSON.stringify({ store, jobs: [], ...message })
  const answer = await edge.send({ method: 'POST', path: '/edge/v1/store', body })
  expect([answer.status, answer.body]).toEqual([200, expect.anything()])
  return (answer.body as { settledJobs: string[] }).settledJobs
}
const inventory = (scan: number, versions: StoredVersion[], isLast = true) => ({
  inventory: { scan, isLast, versions },
})
const present = (versionId: string, more: Partial<StoredVersion> = {}): StoredVersion => ({
  versionId,
  state: 'present',
  ...sizes,
  ...more,
})
const vdisk = () => site().query<VdiskDetail>('vdisk.get', { vdiskId: site().tenant.vdiskId })
const version = async (id: string) => (await vdisk()).versions.find((one) => one.id === id)
const job = (jobId: string | undefined) => site().query<StoreJobView>('storeJob.get', { jobId })
const report = (id: string | undefined, more: Partial<StoreJobReport>): StoreJobReport => ({
  id: id ?? '',
  state: 'running',
  progressBytes: 0,
  totalBytes: 0,
  ...more,
})
const madeOf = (versionId: string, byte = 2) => ({
  versionId,
  root: rootOf(byte),
  counter: 4,
  sizeBytes: 1024,
})

/** The tenant's version, in the store. */
beforeEach(async () => {
  const { organizationId, versionId } = site().tenant
  await site().api.db.vdiskVersion.update({
    where: { organizationId_id: { organizationId, id: versionId } },
    data: { manifestRoot: Uint8Array.from(Buffer.alloc(32, 1)), manifestCounter: 1 },
  })
})

async function beginMaintenance() {
  const { organizationId, versionId, deviceIds } = site().tenant
  const deviceId = deviceIds[0] ?? ''
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: deviceId } },
    data: { deviceType: 'maintenance' },
  })
  const { revision: vdiskRevision } = await vdisk()
  return site().mutate<VersionWithJobs>('version.startMaintenance', { versionId, vdiskRevision, deviceId })
}

async function merge(): Promise<VersionWithJobs> {
  const { versionId } = site().tenant
  const { revision: vdiskRevision } = await vdisk()
  return site().mutate<VersionWithJobs>('version.merge', { versionId, vdiskRevision, into: 'base' })
}

test('an inventory of several pages is kept, and what no page names is missing', async () => {
  const { versionId, organizationId, vdiskId } = site().tenant
  const file = { organizationId, vdiskId, sizeBytes: 512, diskPath: 'x', commandLine: '' }
  const other = await site().api.db.vdiskVersion.create({
    data: { ...file, number: 2 },
    select: { id: true },
  })
  await say(inventory(1, [present(versionId, { root: rootOf(1), checkedUnixMs: 1_795_000_000_000 })], false))
  await say(inventory(1, [present(other.id), present(randomUUID())]))
  expect((await version(versionId))?.atEdges).toMatchObject([
    { state: 'present', ...sizes, isLayer: false, checkedAt: '2026-11-18T11:06:40.000Z' },
  ])
  expect((await version(other.id))?.atEdges).toHaveLength(1)
  await say(inventory(2, [present(other.id)]))
  expect((await version(versionId))?.atEdges).toMatchObject([{ state: 'missing', ownBytes: 0 }])
})

test('whoever watches is told once that an edge lost a version that devices boot, and of no other version', async () => {
  const { versionId, organizationId, vdiskId } = site().tenant
  const file = { organizationId, vdiskId, sizeBytes: 512, diskPath: 'x', commandLine: '' }
  const old = await site().api.db.vdiskVersion.create({
    data: { ...file, number: 0, state: 'released', sealedAt: new Date() },
    select: { id: true },
  })
  const admin = await signInAs(site().api, organizationId, 'admin')
  const endpoint = { name: 'Lost', url: 'https://hooks.example/in', events: ['version.missing'] }
  expect((await site().tryMutation('webhook.create', endpoint, admin)).status).toBe(200)
  const events = () => site().api.db.webhookEvent.findMany({ where: { organizationId, type: 'version.missing' } })
  await say(inventory(1, [present(versionId, { root: rootOf(1) }), present(old.id)]))
  await say(inventory(2, []))
  await say(inventory(3, []))
  expect((await events()).map(({ payload }) => payload)).toMatchObject([
    { data: { versionId, versionNumber: 1, vdiskId, access: 'default', edgeId: site().edge.edgeId } },
  ])
  const audited = await site().api.db.auditEntry.findMany({ where: { organizationId, action: 'version.missing' } })
  expect(audited).toMatchObject([{ objectId: versionId }])
})

test('a job that waits at its edge stays queued and says for what', async () => {
  const { versionId } = site().tenant
  await say(inventory(1, [present(versionId, { root: rootOf(1) })]))
  const { jobIds } = await merge()
  const [id] = jobIds
  await say({ jobs: [report(id, { isWaiting: true, message: 'The edge has no store yet.' })] })
  expect(await job(id)).toMatchObject({ state: 'queued', startedAt: null })
  expect((await job(id)).untrusted.message).toBe('The edge has no store yet.')
  await say({ jobs: [report(id, {})] })
  expect(await job(id)).toMatchObject({ state: 'running', untrusted: { message: null } })
})

test('other bytes under a version’s name are damage', async () => {
  const { versionId } = site().tenant
  await say(inventory(1, [present(versionId, { root: rootOf(3) })]))
  expect((await version(versionId))?.atEdges).toMatchObject([{ state: 'damaged' }])
})

test('a message that is replayed, or older, changes nothing', async () => {
  const { versionId } = site().tenant
  await say(inventory(5, [present(versionId, { root: rootOf(1) })]))
  site().edge.counter -= 1
  await say(inventory(6, []))
  expect((await version(versionId))?.atEdges).toMatchObject([{ state: 'present' }])
})

test('what was written is sealed: it is in test with what the edge says of it, and then never changes', async () => {
  const made = await beginMaintenance()
  await say(inventory(1, [present(made.id, { isLayer: true })]))
  const sealed = await site().mutate<VersionWithJobs>('version.seal', {
    versionId: made.id,
    revision: made.revision,
    bootFiles: 'parent',
  })
  expect((await site().state()).storeJobs).toMatchObject([
    {
      kind: 'seal',
      versionId: made.id,
      parentVersionId: site().tenant.versionId,
      number: 2,
      bootFiles: 'parent',
    },
  ])
  expect(await version(made.id)).toMatchObject({ access: 'maintenance', isSealing: true })
  const again = await site().tryMutation('version.seal', { versionId: made.id, revision: sealed.revision })
  expect(again.text).toContain('is being sealed already')
  const [id] = sealed.jobIds
  expect(await say({ jobs: [report(id, { progressBytes: 10, totalBytes: 20, message: 'hashing' })] })).toEqual([])
  expect(await job(id)).toMatchObject({
    state: 'running',
    progressBytes: 10,
    untrusted: { message: 'hashing' },
  })
  expect((await site().tryMutation('storeJob.cancel', { jobId: id })).text).toContain('is sealing it now')
  const kernel = { sha256: 'ab'.repeat(32), sizeBytes: 4096 }
  const end = report(id, {
    state: 'done',
    made: { ...madeOf(made.id), commandLine: 'root=/dev/vda', kernel },
  })
  expect(await say({ jobs: [end] })).toEqual([id])
  expect(await say({ jobs: [end] })).toEqual([id])
  expect(await version(made.id)).toMatchObject({
    access: 'test',
    isSealing: false,
    sizeBytes: 1024,
    commandLine: 'root=/dev/vda',
    kernel,
    manifest: { root: rootOf(2), counter: 4 },
  })
  expect((await vdisk()).maintenance).toBeNull()
  const state = await site().state()
  expect(state).not.toHaveProperty('storeJobs')
  const { organizationId } = site().tenant
  const where = { organizationId_id: { organizationId, id: made.id } }
  await expect(site().api.db.vdiskVersion.update({ where, data: { sizeBytes: 4096 } })).rejects.toThrow(/is sealed/)
})

test('an image that is adopted keeps its note, unless one is written here', async () => {
  const { edge, tenant } = site()
  await edge.heartbeat({ storeJobKinds: ['adopt'] })
  const image = { name: 'Lab', sizeBytes: 1024, createdUnixMs: 0, hasKernel: false }
  const ids = [randomUUID(), randomUUID()]
  await say(
    inventory(
      1,
      ids.map((id) => present(id, { root: rootOf(2), image })),
    ),
  )
  for (const [index, note] of ['', 'written here'].entries()) {
    const versionId = ids[index] ?? ''
    const input = { edgeId: edge.edgeId, versionId, vdiskId: tenant.vdiskId, note }
    const made = await site().mutate<VersionWithJobs>('version.adopt', input)
    const end = { state: 'done' as const, made: { ...madeOf(versionId), note: 'Büro, "neu"' } }
    expect(await say({ jobs: [report(made.jobIds[0], end)] })).toEqual(made.jobIds)
    expect(await version(versionId)).toMatchObject({ access: 'test', note: note || 'Büro, "neu"' })
  }
})

test('a seal that fails says why, and the device writes on', async () => {
  const made = await beginMaintenance()
  const { jobIds } = await site().mutate<VersionWithJobs>('version.seal', {
    versionId: made.id,
    revision: made.revision,
  })
  expect((await site().state()).devices[0]).toMatchObject({ versionId: site().tenant.versionId })
  const message = `What was written for the version ${made.id} is not whole: a part of layers/${made.id} is missing.`
  await say({ jobs: [report(jobIds[0], { state: 'failed', message })] })
  // An edge knows a version by its id, people know it by its number.
  expect(await job(jobIds[0])).toMatchObject({
    state: 'failed',
    untrusted: {
      message: `What was written for the version 2 is not whole: a part of layers/${made.id} is missing.`,
    },
  })
  expect((await site().state()).devices[0]).toMatchObject({ versionId: made.id, writes: true })
})

test('a seal that was done before it was cancelled is done', async () => {
  const made = await beginMaintenance()
  const { jobIds } = await site().mutate<VersionWithJobs>('version.seal', {
    versionId: made.id,
    revision: made.revision,
  })
  await site().mutate('storeJob.cancel', { jobId: jobIds[0] })
  expect(await version(made.id)).toMatchObject({ isSealing: false, access: 'maintenance' })
  await say({ jobs: [report(jobIds[0], { state: 'done', made: madeOf(made.id) })] })
  expect(await version(made.id)).toMatchObject({ access: 'test' })
  expect(await job(jobIds[0])).toMatchObject({ state: 'done' })
})

test('a merge has the root of the merged version: an edge that reports other data fails, even if it is the first', async () => {
  const { versionId } = site().tenant
  const second = await site().enrolEdge()
  await say(inventory(1, [present(versionId, { root: rootOf(1) })]))
  await say(inventory(1, [present(versionId, { root: rootOf(1) })]), second)
  const merged = await merge()
  expect(merged.jobIds).toHaveLength(2)
  const jobs = await Promise.all(merged.jobIds.map(job))
  const ofSecond = jobs.find((one) => one.edge.id === second.edgeId)?.id
  const ofFirst = jobs.find((one) => one.edge.id !== second.edgeId)?.id
  // Nobody speaks of another's job.
  expect(await say({ jobs: [report(ofSecond, { state: 'done', made: madeOf(merged.id, 1) })] })).toEqual([ofSecond])
  expect(await job(ofSecond)).toMatchObject({ state: 'queued' })
  await say({ jobs: [report(ofSecond, { state: 'done', made: madeOf(merged.id, 3) })] }, second)
  expect(await job(ofSecond)).toMatchObject({
    state: 'failed',
    untrusted: {
      message: 'the edge created different data than the merged version has; verify that version at this edge',
    },
  })
  await say({ jobs: [report(ofFirst, { state: 'done', made: madeOf(merged.id, 1) })] })
  expect(await job(ofFirst)).toMatchObject({ state: 'done' })
  expect(await version(merged.id)).toMatchObject({ access: 'test', manifest: { root: rootOf(1) } })
})

test('a merge that fails everywhere leaves no version; cancelled under way, what was made of it is deleted', async () => {
  await say(inventory(1, [present(site().tenant.versionId, { root: rootOf(1) })]))
  const failed = await merge()
  await say({ jobs: [report(failed.jobIds[0], { state: 'failed', message: 'disk full' })] })
  expect(await version(failed.id)).toBeUndefined()
  const cancelled = await merge()
  await say({ jobs: [report(cancelled.jobIds[0], { state: 'running', progressBytes: 1, totalBytes: 9 })] })
  await site().mutate('storeJob.cancel', { jobId: cancelled.jobIds[0] })
  expect(await version(cancelled.id)).toBeUndefined()
  const { storeJobs } = await site().state()
  expect(storeJobs).toMatchObject([{ kind: 'delete', versionId: cancelled.id }])
  await say({ jobs: [report(storeJobs?.[0]?.id, { state: 'done' })] })
  expect(await site().state()).not.toHaveProperty('storeJobs')
})

test('an import makes a version, released if that was asked for; its edge is told where the image lies', async () => {
  const { vdiskId } = site().tenant
  const { edgeId } = site().edge
  const input = { vdiskId, edgeId, sourcePath: 'imports/linux.raw', state: 'released' }
  const made = await site().mutate<VersionWithJobs>('version.import', input)
  const { storeJobs } = await site().state()
  expect(storeJobs).toEqual([
    {
      id: made.jobIds[0],
      kind: 'import',
      vdiskId,
      versionId: made.id,
      sourcePath: 'imports/linux.raw',
      number: 2,
    },
  ])
  const kernel = { sha256: 'cd'.repeat(32), sizeBytes: 4096 }
  const initrd = { sha256: 'ef'.repeat(32), sizeBytes: 8192 }
  const done = { ...madeOf(made.id), commandLine: 'bootfarm.root=nbd0p2', kernel, initrd }
  await say({ jobs: [report(made.jobIds[0], { state: 'done', made: done })] })
  expect(await version(made.id)).toMatchObject({
    access: 'default',
    sizeBytes: 1024,
    commandLine: 'bootfarm.root=nbd0p2',
    kernel,
    initrd,
    manifest: { root: rootOf(2), counter: 4 },
  })
  const wrong = await site().tryMutation('version.import', { ...input, sourcePath: '../etc/passwd' })
  expect(wrong.status).toBe(400)
})

test('an import on a parent that the edge holds shares with it, and adds drivers where the edge can', async () => {
  const { vdiskId, versionId } = site().tenant
  const { edge } = site()
  const input = { vdiskId, edgeId: edge.edgeId, sourcePath: 'imports/linux.raw', parentVersionId: versionId }
  const refusedOf = async (more: object) => (await site().tryMutation('version.import', { ...input, ...more })).text
  expect(await refusedOf({})).toContain('has not reported that its store holds version 1 completely')
  await say(inventory(1, [present(versionId, { root: rootOf(1) })]))
  expect(await refusedOf({ parentVersionId: randomUUID() })).toContain('must be a sealed version of the same vDisk')
  expect(await refusedOf({ parentVersionId: null, bootFiles: 'parent' })).toContain('Name the parent version')
  expect(await refusedOf({ bootFiles: 'parent', kernelPath: 'imports/k' })).toContain('needs no kernel')
  expect(await refusedOf({ bootFiles: 'parent', modules: ['r8125'] })).toContain('made from the image')
  expect(await refusedOf({ modules: ['r8125,--force'] })).toContain('name of a kernel module')
  await edge.heartbeat({ storeJobKinds: ['import'] })
  expect(await refusedOf({ modules: ['r8125'] })).toContain('cannot add drivers to an import. Update it.')
  await edge.heartbeat({ storeJobKinds: ['import', 'import_modules'] })
  await site().mutate<VersionWithJobs>('version.import', { ...input, modules: ['r8125', 'crc32c_generic'] })
  await site().mutate<VersionWithJobs>('version.import', { ...input, bootFiles: 'parent', commandLine: 'quiet' })
  expect((await site().state()).storeJobs).toMatchObject([
    { kind: 'import', parentVersionId: versionId, modules: ['r8125', 'crc32c_generic'] },
    { kind: 'import', parentVersionId: versionId, bootFiles: 'parent', commandLine: 'quiet' },
  ])
})

test('an import that fails or is cancelled does not use up a number, unless a later one was made', async () => {
  const input = { vdiskId: site().tenant.vdiskId, edgeId: site().edge.edgeId, sourcePath: 'imports/linux.raw' }
  const start = () => site().mutate<VersionWithJobs>('version.import', input)
  const end = (made: VersionWithJobs, more: Partial<StoreJobReport>) =>
    say({ jobs: [report(made.jobIds[0], { state: 'failed', message: 'It is no image.', ...more })] })
  const numberOf = async (made: VersionWithJobs) => (await version(made.id))?.number
  await end(await start(), {})
  const second = await start()
  expect(await numberOf(second)).toBe(2)
  const third = await start()
  await end(second, {})
  await site().mutate('storeJob.cancel', { jobId: third.jobIds[0] })
  const next = await start()
  expect(await numberOf(next)).toBe(3)
  await end(next, { state: 'done', message: 'wrote 1.0 KiB', made: madeOf(next.id) })
  expect(await job(next.jobIds[0])).toMatchObject({ state: 'done', untrusted: { message: 'wrote 1.0 KiB' } })
  expect(await numberOf(await start())).toBe(4)
})

test('an import for a vDisk of another farm than the edge’s is refused, and makes neither a version nor a job', async () => {
  const { organizationId } = site().tenant
  const { id: farmId } = await site().api.db.farm.create({
    data: { organizationId, name: 'Other farm' },
    select: { id: true },
  })
  const elsewhere = await site().api.db.vdisk.create({
    data: { organizationId, farmId, name: 'Elsewhere' },
    select: { id: true },
  })
  const refused = await site().tryMutation('version.import', {
    vdiskId: elsewhere.id,
    edgeId: site().edge.edgeId,
    sourcePath: 'imports/linux.raw',
  })
  expect([refused.status, refused.text]).toEqual([
    400,
    expect.stringContaining('belongs to another farm than Elsewhere'),
  ])
  expect(await site().api.db.vdiskVersion.count({ where: { vdiskId: elsewhere.id } })).toBe(0)
  expect(await site().state()).not.toHaveProperty('storeJobs')
})

test('who cancels a job takes nothing of its version away while its edge speaks of its store', async () => {
  const { api, edge, tenant } = site()
  const input = { vdiskId: tenant.vdiskId, edgeId: edge.edgeId, sourcePath: 'imports/linux.raw' }
  const made = await site().mutate<VersionWithJobs>('version.import', input)
  let cancelled: Promise<unknown> | undefined
  // Works like a message of the edge: its own row first, and then the versions' rows, which name it.
  await api.db.$transaction(
    async (message) => {
      await message.$queryRaw`select id from edge where id = ${edge.edgeId}::uuid for no key update`
      cancelled = site().mutate('storeJob.cancel', { jobId: made.jobIds[0] })
      await expect
        .poll(
          () => api.db.$queryRaw<{ pid: number }[]>`
            select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
              and query like '%from edge%for no key update%'`,
          { timeout: 30_000 },
        )
        .toHaveLength(1)
      const rows = await message.$queryRaw`
        select id from vdisk_version where id = ${made.id}::uuid for key share nowait`
      expect(rows).toHaveLength(1)
    },
    { timeout: 60_000 },
  )
  expect(await cancelled).toMatchObject({ state: 'cancelled' })
  expect(await version(made.id)).toBeUndefined()
})

test('of an import that is cancelled before its edge has spoken of it, what the edge may have begun is deleted', async () => {
  const input = {
    vdiskId: site().tenant.vdiskId,
    edgeId: site().edge.edgeId,
    sourcePath: 'imports/linux.raw',
  }
  const made = await site().mutate<VersionWithJobs>('version.import', input)
  expect(await site().mutate('storeJob.cancel', { jobId: made.jobIds[0] })).toMatchObject({
    state: 'cancelled',
  })
  expect(await version(made.id)).toBeUndefined()
  expect((await site().state()).storeJobs).toMatchObject([{ kind: 'delete', versionId: made.id }])
})

test('what an import boots with can be given, or be nothing', async () => {
  const { vdiskId } = site().tenant
  const input = { vdiskId, edgeId: site().edge.edgeId, sourcePath: 'imports/linux.raw' }
  const commandLine = 'quiet'
  for (const [sourcePath, problem] of [
    ['/srv/linux.raw', 'begins with /'],
    ['imports\\linux.raw', 'has a backslash'],
    ['imports/../../linux.raw', 'has . or .. in it'],
    ['imports//linux.raw', 'A name is missing'],
    ['imports/\u202elinux.raw', 'cannot be seen'],
  ]) {
    const refused = await site().tryMutation('version.import', { ...input, sourcePath })
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(problem ?? '')])
  }
  const given = { ...input, kernelPath: 'imports/vmlinuz', initrdPath: 'imports/initrd.img', commandLine }
  await site().mutate<VersionWithJobs>('version.import', given)
  await site().mutate<VersionWithJobs>('version.import', { ...input, bootFiles: 'none' })
  expect((await site().state()).storeJobs).toMatchObject([
    { kind: 'import', kernelPath: 'imports/vmlinuz', initrdPath: 'imports/initrd.img', commandLine },
    { kind: 'import', bootFiles: 'none' },
  ])
  const both = await site().tryMutation('version.import', { ...given, bootFiles: 'none' })
  expect([both.status, both.text]).toEqual([400, expect.stringContaining('with its own boot loader')])
})

test('an empty disk for a capture boots with the kernel of a version that the edge holds', async () => {
  const { vdiskId, versionId, farmId, organizationId } = site().tenant
  const { edge } = site()
  const commandLine = 'bootfarm.capture=auto'
  const input = { vdiskId, edgeId: edge.edgeId, emptySizeBytes: 1 << 30, bootVersionId: versionId, commandLine }
  const refusedOf = async (more: object) => (await site().tryMutation('version.import', { ...input, ...more })).text
  expect(await refusedOf({ sourcePath: 'imports/linux.raw' })).toContain('Name one image')
  expect(await refusedOf({ emptySizeBytes: 1000 })).toContain('multiple of 512')
  expect(await refusedOf({ bootVersionId: null })).toContain('An empty disk has no kernel')
  expect(await refusedOf({ parentVersionId: versionId })).toContain('Leave the parent out')
  for (const more of [{ kernelPath: 'imports/k' }, { bootFiles: 'none', commandLine: '' }, { modules: ['r8125'] }])
    expect(await refusedOf(more)).toContain('needs no other boot files')
  expect(await refusedOf({ bootVersionId: randomUUID() })).toContain('sealed one of the same farm')
  expect(await refusedOf({})).toContain('Name a version that it holds')
  await say(inventory(1, [present(versionId, { root: rootOf(1) })]))
  await edge.heartbeat({ storeJobKinds: ['import'] })
  expect(await refusedOf({})).toContain('cannot make empty disks. Update it.')
  await edge.heartbeat({ storeJobKinds: ['import', 'import_empty'] })
  const made = await site().mutate<VersionWithJobs>('version.import', input)
  await site().mutate<VersionWithJobs>('version.import', {
    ...input,
    bootVersionId: null,
    bootFiles: 'none',
    commandLine: '',
  })
  const empty = { kind: 'import', vdiskId, sourceSizeBytes: 1 << 30 }
  expect((await site().state()).storeJobs).toEqual([
    { id: made.jobIds[0], ...empty, versionId: made.id, number: 2, bootVersionId: versionId, commandLine },
    expect.objectContaining({ ...empty, bootFiles: 'none' }),
  ])
  const otherFarm = await site().api.db.farm.create({ data: { organizationId, name: 'Other' }, select: { id: true } })
  expect(otherFarm.id).not.toBe(farmId)
  await site().api.db.vdisk.update({
    where: { organizationId_id: { organizationId, id: vdiskId } },
    data: { farmId: otherFarm.id },
  })
  expect(await refusedOf({})).toContain('belongs to another farm')
})

test('what a device writes is sealed once its edge hears nothing of the device any more', async () => {
  const { vdiskId } = site().tenant
  const made = await beginMaintenance()
  const seal = () => site().tryMutation('version.seal', { versionId: made.id, revision: made.revision })
  const boot = { id: randomUUID(), mac: site().mac, vdiskId, versionId: made.id }
  await site().report(bootWith(boot))
  for (const isWritten of [undefined, true]) {
    await say(inventory(isWritten ? 2 : 1, [present(made.id, { isLayer: true, isWritten })]))
    expect((await seal()).text).toContain('pc-01 still runs from version 2: shut it down first')
  }
  await say(inventory(3, [present(made.id, { isLayer: true, isWritten: false })]))
  // It starts again: its reports come later.
  const { outcome: _none, ...begun } = bootWith({ ...boot, id: randomUUID() })
  await site().report({ ...begun, startedUnixMs: begun.startedUnixMs + 60_000 })
  expect((await seal()).text).toContain('pc-01 still runs')
  await site().report({ ...bootWith({ ...begun, startedUnixMs: begun.startedUnixMs + 60_000 }), revision: 2 })
  expect((await seal()).status).toBe(200)
})

test('what was written is discarded also at edges that have not said yet that they have it', async () => {
  const made = await beginMaintenance()
  const [away, other] = [await site().enrolEdge(), await site().enrolEdge()]
  await say(inventory(1, [present(made.id, { isLayer: true })]))
  // It holds the version's parent, and was offline since.
  await say(inventory(1, [present(site().tenant.versionId, { root: rootOf(1) })]), away)
  await say(inventory(1, []), other)
  await site().mutate('version.discardMaintenance', { versionId: made.id, revision: made.revision })
  for (const edge of [site().edge, away])
    expect((await site().state(edge)).storeJobs).toMatchObject([{ kind: 'delete', versionId: made.id }])
  expect(await site().state(other)).not.toHaveProperty('storeJobs')
})

test('a store is verified when somebody asks, once it has room for another job', async () => {
  const { edgeId } = site().edge
  const { id } = await site().mutate<StoreJobView>('storeJob.start', { edgeId, kind: 'verify' })
  expect((await site().state()).storeJobs).toEqual([{ id, kind: 'verify' }])
  const { items } = await site().query<{ items: StoreJobView[] }>('storeJob.list', { state: 'active' })
  expect(items).toMatchObject([{ id, edge: { id: edgeId }, version: null }])
  for (let count = 1; count < 64; count++) await site().mutate('storeJob.start', { edgeId, kind: 'gc' })
  const full = await site().tryMutation('storeJob.start', { edgeId, kind: 'gc' })
  expect([full.status, full.text]).toEqual([409, expect.stringContaining('already has 64 jobs')])
})

test('a version is exported by an edge that holds all of it, in a format that is named', async () => {
  const { edgeId } = site().edge
  const { versionId } = site().tenant
  const start = (more: object = {}) =>
    site().tryMutation('storeJob.start', { edgeId, kind: 'export', versionId, format: 'vhdx', ...more })
  expect(await start()).toMatchObject({ status: 404, text: expect.stringContaining('has no such version') })
  await say(inventory(1, [present(versionId, { state: 'damaged', root: rootOf(1) })]))
  expect(await start()).toMatchObject({ status: 409, text: expect.stringMatching(/holds version \d+ completely/) })
  await say(inventory(2, [present(versionId, { root: rootOf(1) })]))
  for (const [more, why] of [
    [{ versionId: null }, 'An export is of one version'],
    [{ format: null }, 'Name the format of the file'],
    [{ kind: 'verify' }, 'Only an export has a format'],
    [{ kind: 'gc', format: null }, 'A store is cleaned as a whole'],
  ] as const)
    expect(await start(more)).toMatchObject({ status: 400, text: expect.stringContaining(why) })
  expect((await start({ format: 'vmdk' })).status).toBe(400)
  await site().edge.heartbeat({ storeJobKinds: ['verify'] })
  expect(await start()).toMatchObject({ status: 409, text: expect.stringContaining('does not support export') })
  await site().edge.heartbeat({ storeJobKinds: ['verify', 'export'] })
  expect((await start()).status).toBe(200)
  const { items } = await site().query<{ items: StoreJobView[] }>('storeJob.list', { state: 'active' })
  const id = items[0]?.id ?? ''
  expect(items).toMatchObject([{ kind: 'export', format: 'vhdx', version: { id: versionId } }])
  const { vdiskId } = site().tenant
  expect((await site().state()).storeJobs).toEqual([{ id, kind: 'export', format: 'vhdx', vdiskId, versionId }])
  const message = 'exported to exports/linux-1.vhdx'
  expect(await say({ jobs: [report(id, { state: 'done', message })] })).toEqual([id])
  const done = await site().query<StoreJobView>('storeJob.get', { jobId: id })
  expect(done).toMatchObject({ state: 'done', untrusted: { message } })
  // Nothing about the version has changed.
  expect(await version(versionId)).toMatchObject({ atEdges: [{ state: 'present' }] })
})

test('a boot profile is shown as its edge tells it, and cleared by an order that the edge gets once', async () => {
  const { versionId } = site().tenant
  const bootProfiles = [
    { hardware: 'architecture 7, network interface 3c:ec:ef', boots: 1, readAheadBytes: 8192, units: 1 },
    { hardware: 'any', boots: 2, readAheadBytes: 4096, units: 1, learnedUnixMs: 1_795_000_000_000 },
  ]
  const clear = () => site().tryMutation('version.clearBootProfile', { versionId })
  expect((await clear()).text).toContain('No edge has learned a boot profile')
  await say(inventory(1, [present(versionId, { root: rootOf(1), bootProfiles })]))
  expect((await version(versionId))?.atEdges[0]?.bootProfiles).toEqual([
    { ...profileOf(bootProfiles[1]), learnedAt: '2026-11-18T11:06:40.000Z' },
    { ...profileOf(bootProfiles[0]), learnedAt: null },
  ])
  const { jobIds } = await site().mutate<VersionWithJobs>('version.clearBootProfile', { versionId })
  expect((await site().state()).storeJobs).toMatchObject([{ id: jobIds[0], kind: 'clear_profile', versionId }])
  expect((await clear()).text).toContain('has already been asked')
  expect(await say({ jobs: [report(jobIds[0], { state: 'done' })] })).toEqual(jobIds)
  await say(inventory(2, [present(versionId, { root: rootOf(1) })]))
  expect((await version(versionId))?.atEdges[0]?.bootProfiles).toEqual([])
})

const bootProfile = { hardware: 'any', boots: 1, readAheadBytes: 4096, units: 1 }
const profileOf = ({ hardware, boots, readAheadBytes, units }: typeof bootProfile = bootProfile) => ({
  hardware,
  boots,
  readAheadBytes,
  units,
})

test.each([
  ['bootProfiles', Array(10).fill(bootProfile)],
  ['bootProfiles.0.boots', [{ ...bootProfile, boots: 2 ** 32 }]],
  ['bootProfiles.0.readAheadBytes', [{ ...bootProfile, readAheadBytes: 2 ** 30 }]],
  ['bootProfiles.0.units', [{ ...bootProfile, units: 8191 }]],
  ['bootProfiles.0.learnedUnixMs', [{ ...bootProfile, learnedUnixMs: 2 ** 53 - 1 }]],
  ['bootProfiles.0.hardware', [{ ...bootProfile, hardware: '\u001b[31m' }]],
])('what no profile can be is refused by its name: %s', async (place, bootProfiles) => {
  const versions = [present(site().tenant.versionId, { bootProfiles })]
  const body = JSON.stringify({ store, jobs: [], ...inventory(1, versions) })
  const answer = await site().edge.send({ method: 'POST', path: '/edge/v1/store', body })
  expect(answer.body).toMatchObject({
    status: 400,
    code: 'invalid_body',
    detail: expect.stringContaining(`inventory.versions.0.${place}:`),
  })
})

test.each([
  ['a page too long', { inventory: { scan: 1, isLast: true, versions: Array(257).fill(present(randomUUID())) } }],
  [
    'a root that is none',
    { inventory: { scan: 1, isLast: true, versions: [present(randomUUID(), { root: 'AA==' })] } },
  ],
  ['text that is no ASCII', { jobs: [report(randomUUID(), { message: 'ä' })] }],
  ['no store', { store: undefined }],
])('%s is refused', async (_what, message) => {
  const body = JSON.stringify({ store, jobs: [], ...message })
  const answer = await site().edge.send({ method: 'POST', path: '/edge/v1/store', body })
  expect(answer.body).toMatchObject({ status: 400, code: 'invalid_body' })
})
