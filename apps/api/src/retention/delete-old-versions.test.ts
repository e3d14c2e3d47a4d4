import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { bootWith, type EdgeClient } from '../../test/edge-client.ts'
import { PlacedSite } from '../../test/placed-site.ts'
import { useTestSite } from '../../test/test-site.ts'
import { purgeOldDeletions } from '../trash/purge-deletion.ts'
import type { DeletionView } from '../trash/schema.ts'
import { deleteOldVersions } from './delete-old-versions.ts'
import type { RetentionPreview, RetentionView } from './schema.ts'

const site = useTestSite('admin')
let placed: PlacedSite
let edge: EdgeClient
/** Of the versions 1 to 4; the last one is the default. */
let ids: string[]

const dayMs = 86_400_000
const lockLimitMs = 30_000

beforeEach(async () => {
  placed = new PlacedSite(site())
  ids = [site().tenant.versionId]
  for (const number of [2, 3, 4]) ids.push(await placed.makeVersion(number, ids.at(-1) ?? null))
  edge = await placed.enrol()
  await placed.hold(edge, ...ids)
})

const idOf = (number: number) => ids[number - 1] ?? ''
const platform = () => ({ db: site().api.serverDb, clock: site().api.clock.read })
const run = () => deleteOldVersions(platform())
const keep = async (keptReleases: number | null, trashDays = 7) => {
  const { vdiskId } = site().tenant
  const { revision } = await site().query<RetentionView>('retention.get', { vdiskId })
  return site().mutate('retention.set', { vdiskId, revision, keptReleases, trashDays })
}
/** Numbers of the versions that are not in the trash. */
const left = async () => {
  const { organizationId, vdiskId } = site().tenant
  const where = { organizationId, vdiskId, deletionId: null }
  return (await site().api.db.vdiskVersion.findMany({ where, orderBy: { number: 'asc' } })).map(({ number }) => number)
}
const trash = async () => (await site().query<{ items: DeletionView[] }>('trash.list', {})).items
const reasonOf = async (number: number) => {
  const { vdiskId } = site().tenant
  const { versions } = await site().query<RetentionPreview>('retention.preview', { vdiskId, keptReleases: 1 })
  return versions.find((one) => one.number === number)?.reasons[0]?.text ?? null
}
const menuWith = (versionId: string) => ({
  farmId: site().tenant.farmId,
  name: 'Choice',
  timeoutMs: 5000,
  defaultEntry: 0,
  entries: [{ title: 'Old', starts: { kind: 'version', vdiskId: site().tenant.vdiskId, versionId } }],
})

test('old released versions go to the trash, and later from the edges that hold them', async () => {
  await run()
  expect(await left()).toEqual([1, 2, 3, 4])
  await keep(2, 3)
  await run()
  expect(await left()).toEqual([3, 4])
  const deletions = await trash()
  const purgedAt = new Date(site().api.clock.now.getTime() + 3 * dayMs).toISOString()
  const told = deletions.map(({ name, purgedAt: at, deletedByName }) => [name, at, deletedByName])
  expect(told.sort()).toEqual([
    ['Linux version 1', purgedAt, 'retention of versions'],
    ['Linux version 2', purgedAt, 'retention of versions'],
  ])
  const { organizationId } = site().tenant
  expect(
    await site().api.db.auditEntry.count({ where: { organizationId, action: 'version.retire', actorKind: 'system' } }),
  ).toBe(2)
  const count = () => site().api.db.deletion.count({ where: { organizationId } })
  await purgeOldDeletions(platform())
  expect(await count()).toBe(2)
  site().api.clock.advance(3 * dayMs)
  await purgeOldDeletions(platform())
  expect(await count()).toBe(0)
  const jobs = await site().api.db.storeJob.findMany({ where: { organizationId, edgeId: edge.edgeId } })
  expect(jobs.map(({ kind, versionId }) => [kind, versionId]).sort()).toEqual(
    [idOf(1), idOf(2)].map((id) => ['delete', id]).sort(),
  )
  site().api.clock.advance(-3 * dayMs)
})

test('a version that retention has deleted can be restored, and stays once it is protected', async () => {
  await keep(3)
  await run()
  expect(await left()).toEqual([2, 3, 4])
  const [deletion] = await trash()
  await site().mutate('vdisk.restoreVersion', { deletionId: deletion?.id })
  const { organizationId } = site().tenant
  const { revision } = await site().api.db.vdiskVersion.findFirstOrThrow({ where: { organizationId, id: idOf(1) } })
  await site().mutate('vdisk.updateVersion', { versionId: idOf(1), revision, isProtected: true })
  await run()
  expect(await left()).toEqual([1, 2, 3, 4])
  expect(await site().tryMutation('vdisk.removeVersion', { versionId: idOf(1) })).toMatchObject({
    status: 409,
    text: expect.stringContaining('protected against deletion'),
  })
})

test('what a device runs stays, and so does the version below one in maintenance', async () => {
  const { vdiskId, organizationId } = site().tenant
  await site().report(bootWith({ id: randomUUID(), mac: site().mac, vdiskId, versionId: idOf(1) }))
  await placed.makeVersion(5, idOf(2), { state: 'maintenance', sealedAt: null, manifestRoot: null })
  await keep(1)
  await run()
  expect(await left()).toEqual([1, 2, 4, 5])
  expect(await reasonOf(1)).toBe('It is used by the running device pc-01.')
  expect(await reasonOf(2)).toBe('It is used by the version in maintenance 5.')
  expect(await site().tryMutation('vdisk.removeVersion', { versionId: idOf(2) })).toMatchObject({
    status: 409,
    text: expect.stringContaining('used by the version in maintenance 5'),
  })
  await site().api.db.vdiskVersion.deleteMany({ where: { organizationId, number: 5 } })
  await run()
  expect(await left()).toEqual([1, 4])
})

test('menus, private images and jobs keep a version; copies that are still to be made do not', async () => {
  const { organizationId, vdiskId } = site().tenant
  await site().mutate('bootMenu.create', menuWith(idOf(1)))
  await site().api.db.device.update({
    where: { organizationId_id: { organizationId, id: site().deviceId } },
    data: { layerClass: 'private', layerVersionId: idOf(2) },
  })
  const job = { organizationId, edgeId: edge.edgeId, vdiskId, askedByName: 'x', askedAt: site().api.clock.now }
  await site().api.db.storeJob.create({ data: { ...job, kind: 'verify', versionId: idOf(3) } })
  await keep(1)
  await run()
  expect(await left()).toEqual([1, 2, 3, 4])
  await site().api.db.storeJob.updateMany({ where: { organizationId }, data: { kind: 'fetch' } })
  await run()
  expect(await left()).toEqual([1, 2, 4])
  expect(await site().api.db.storeJob.findMany({ where: { organizationId } })).toMatchObject([{ state: 'cancelled' }])
  await site().api.db.device.updateMany({ where: { organizationId }, data: { layerClass: null, layerVersionId: null } })
  await site().api.db.storeJob.create({
    data: { ...job, kind: 'fetch', versionId: idOf(4), baseVersionId: idOf(2) },
  })
  await run()
  expect(await left()).toEqual([1, 2, 4])
  expect(await reasonOf(2)).toContain('an edge that fetches or packs a version based on it')
})

test('a version that devices have booted from the trash is not purged before they restart', async () => {
  const { vdiskId, macs } = site().tenant
  await keep(3, 0)
  await run()
  await site().report(bootWith({ id: randomUUID(), mac: macs[0] ?? '', vdiskId, versionId: idOf(1) }))
  await purgeOldDeletions(platform())
  const [deletion] = await trash()
  expect(deletion?.name).toBe('Linux version 1')
  const startedUnixMs = site().api.clock.now.getTime()
  await site().report(bootWith({ id: randomUUID(), mac: macs[0] ?? '', startedUnixMs, vdiskId, versionId: idOf(4) }))
  await purgeOldDeletions(platform())
  expect(await trash()).toEqual([])
})

/** Resolves when a statement waits for a lock. */
const waits = (query: string) =>
  expect
    .poll(
      () => site().api.db.$queryRaw<object[]>`
        select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and query ilike ${`%${query}%`}`,
      { timeout: lockLimitMs },
    )
    .toHaveLength(1)

test('a menu that gets a version while retention deletes it keeps it', async () => {
  const { organizationId, farmId, vdiskId } = site().tenant
  await keep(3)
  let deleting: Promise<void> | undefined
  await site().api.db.$transaction(
    async (menu) => {
      const now = site().api.clock.now
      const facts = { name: 'Choice', timeoutMs: 5000, defaultPosition: 0, createdAt: now, updatedAt: now }
      const { id: menuId } = await menu.bootMenu.create({ data: { organizationId, farmId, ...facts } })
      await menu.bootMenuEntry.create({
        data: { organizationId, menuId, position: 0, title: 'Old', vdiskId, versionId: idOf(1) },
      })
      deleting = run()
      deleting.catch(() => undefined)
      await waits('update vdisk_version set deletion_id')
    },
    { timeout: lockLimitMs },
  )
  await expect(deleting).rejects.toThrow('a boot menu starts it')
  expect(await left()).toEqual([1, 2, 3, 4])
  await run()
  expect(await left()).toEqual([1, 2, 3, 4])
})

/** Moves version 1 to the trash like retention, and meanwhile does something that waits for that. */
async function whileDeleting<T>(waiting: string, work: () => Promise<T>): Promise<T> {
  const { organizationId, vdiskId } = site().tenant
  let working: Promise<T> | undefined
  await site().api.db.$transaction(
    async (deleting) => {
      await deleting.$queryRaw`select id from vdisk where id = ${vdiskId}::uuid for no key update`
      const { id: deletionId } = await deleting.deletion.create({
        data: {
          organizationId,
          kind: 'version',
          objectId: idOf(1),
          objectName: 'Linux version 1',
          counts: {},
          deletedAt: site().api.clock.now,
          deletedByName: 'retention of versions',
        },
      })
      await deleting.vdiskVersion.updateMany({ where: { organizationId, id: idOf(1) }, data: { deletionId } })
      working = work()
      working.catch(() => undefined)
      await waits(waiting)
    },
    { timeout: lockLimitMs },
  )
  if (!working) throw new Error('it was not started')
  return working
}

test('nobody begins to need a version while it is deleted: the database refuses menus, and steps find it gone', async () => {
  const menu = await whileDeleting('boot_menu_entry', () => site().tryMutation('bootMenu.create', menuWith(idOf(1))))
  expect(menu).toMatchObject({ status: 409, text: expect.stringContaining('deleted in the meantime') })
  const { organizationId, vdiskId } = site().tenant
  const { db } = site().api
  await db.vdiskVersion.updateMany({ where: { organizationId, id: idOf(1) }, data: { deletionId: null } })
  const { revision } = await db.vdisk.findFirstOrThrow({ where: { id: vdiskId } })
  const revert = await whileDeleting('from vdisk', () =>
    site().tryMutation('version.revert', { versionId: idOf(1), vdiskRevision: revision }),
  )
  expect(revert.status).toBe(404)
  // Also by whoever does not ask first.
  for (const choice of ['default_version_id', 'override_version_id', 'pending_version_id'])
    await expect(
      db.$executeRawUnsafe(`update vdisk set ${choice} = '${idOf(1)}' where id = '${vdiskId}'`),
    ).rejects.toThrow('is in the trash')
  const unsealed = { state: 'maintenance', sealedAt: null, manifestRoot: null }
  await expect(placed.makeVersion(5, idOf(1), unsealed)).rejects.toThrow()
  await placed.makeVersion(5, idOf(2), unsealed)
})

test('the database refuses to delete what the vDisk holds, whoever asks', async () => {
  const { organizationId, vdiskId } = site().tenant
  const { db } = site().api
  const key = { organizationId_id: { organizationId, id: vdiskId } }
  const deletion = { kind: 'version', objectName: 'x', counts: {}, deletedAt: site().api.clock.now, deletedByName: 'x' }
  const { id: deletionId } = await db.deletion.create({ data: { organizationId, objectId: idOf(1), ...deletion } })
  const remove = () =>
    db.$executeRaw`update vdisk_version set deletion_id = ${deletionId}::uuid where id = ${idOf(1)}::uuid`
  await db.vdisk.update({ where: key, data: { overrideVersionId: idOf(1) } })
  await expect(remove()).rejects.toThrow('it is the override')
  await db.vdisk.update({ where: key, data: { overrideVersionId: null, pendingVersionId: idOf(1) } })
  await expect(remove()).rejects.toThrow('it is to be released')
  await db.vdisk.update({ where: key, data: { pendingVersionId: null } })
  const times = { askedAt: site().api.clock.now, waitsUntil: new Date(site().api.clock.now.getTime() + dayMs) }
  await db.waitingPromotion.create({
    data: { organizationId, vdiskId, versionId: idOf(1), step: 'revert', askedByName: 'x', ...times },
  })
  await expect(remove()).rejects.toThrow('its promotion waits for edges')
  await keep(1)
  await run()
  expect(await left()).toEqual([1, 4])
  expect(await reasonOf(1)).toBe('It is used by the waiting promotion of Linux.')
  await db.waitingPromotion.deleteMany({ where: { organizationId } })
  await db.vdiskVersion.updateMany({ where: { organizationId, id: idOf(1) }, data: { isProtected: true } })
  await expect(remove()).rejects.toThrow('it is protected')
  await db.vdiskVersion.updateMany({ where: { organizationId, id: idOf(1) }, data: { isProtected: false } })
  expect(await remove()).toBe(1)
})
