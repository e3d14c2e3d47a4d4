import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { EdgeClient } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { makeJoinToken } from '../../test/test-tenant.ts'
import { ensureDemoSite } from '../demo/ensure-demo-site.ts'
import type { DeviceDetail } from '../device/schema.ts'
import { toAppError } from '../errors/to-app-error.ts'
import type { VdiskDetail } from '../vdisk/schema.ts'
import type { MenuDetail } from './schema.ts'

const site = useTestSite('admin')
const localDisk = { title: 'Local disk', starts: { kind: 'local_disk' } }
const newestOf = (vdiskId: string, title = 'Linux') => ({
  title,
  starts: { kind: 'version', vdiskId, versionId: null as string | null },
})

let input: { farmId: string; name: string; timeoutMs: number; defaultEntry: number; entries: object[] }
beforeEach(() => {
  const { farmId, vdiskId } = site().tenant
  const entries = [newestOf(vdiskId), localDisk]
  input = { farmId, name: 'Lab menu', timeoutMs: 10_000, defaultEntry: 0, entries }
})

const create = (changes: object = {}) => site().mutate<MenuDetail>('bootMenu.create', { ...input, ...changes })
const refused = (changes: object, procedure = 'bootMenu.create') =>
  site().tryMutation(procedure, { ...input, ...changes })
const ofCollection = (menuId: string | null, collectionId = site().tenant.collectionId) =>
  site().mutate('collection.setBootMenu', { collectionId, menuId })
const ofDevice = (menu: object, deviceId = site().deviceId) => site().mutate('device.setBootMenu', { deviceId, menu })
/** A vDisk of the farm that no collection boots. */
async function addVdisk(versions: number[], name = 'Windows'): Promise<{ vdiskId: string; versionIds: string[] }> {
  const { organizationId, farmId } = site().tenant
  const { db } = site().api
  const { id: vdiskId } = await db.vdisk.create({ data: { organizationId, farmId, name } })
  const versionIds: string[] = []
  for (const number of versions) {
    const files = { sizeBytes: 512, diskPath: `${name}/${number}`, commandLine: '' }
    const version = await db.vdiskVersion.create({ data: { organizationId, vdiskId, number, ...files } })
    versionIds.push(version.id)
  }
  return { vdiskId, versionIds }
}

describe('a boot menu', () => {
  test('is made, read, listed and changed as a whole', async () => {
    const { vdiskId, versionIds } = await addVdisk([1, 2])
    const fixed = { title: 'Windows 1', starts: { kind: 'version', vdiskId, versionId: versionIds[0] } }
    const menu = await create({ entries: [newestOf(vdiskId, 'Windows'), fixed, localDisk], defaultEntry: 2 })
    expect(menu).toMatchObject({
      name: 'Lab menu',
      timeoutMs: 10_000,
      defaultEntry: 2,
      entryCount: 3,
      farmName: expect.stringContaining('Farm of'),
      defaultTitle: 'Local disk',
      collectionCount: 0,
      entries: [
        { title: 'Windows', starts: { vdiskName: 'Windows', versionId: null, versionNumber: 2 } },
        { title: 'Windows 1', starts: { versionId: versionIds[0], versionNumber: 1 } },
        localDisk,
      ],
    })
    site().api.clock.advance(1000)
    const entries = [localDisk, newestOf(vdiskId, 'Other')]
    const changed = await site().mutate<MenuDetail>('bootMenu.update', {
      menuId: menu.id,
      revision: menu.revision,
      name: 'Renamed',
      timeoutMs: 3_600_000,
      entries,
      defaultEntry: 0,
    })
    expect(changed.entries.map(({ title }) => title)).toEqual(['Local disk', 'Other'])
    expect(await site().query('bootMenu.get', { menuId: menu.id })).toEqual(changed)
    for (const place of [{ farmId: input.farmId }, { siteId: site().tenant.siteId }, {}])
      expect(await site().query('bootMenu.list', place)).toMatchObject({
        items: [{ id: menu.id, name: 'Renamed', timeoutMs: 3_600_000, entryCount: 2, defaultTitle: 'Local disk' }],
      })
    expect(await site().query('bootMenu.list', { siteId: randomUUID() })).toMatchObject({ items: [] })
  })

  test('offers the farm’s vDisks with their versions, newest first', async () => {
    await addVdisk([1, 3])
    expect(await site().query('bootMenu.choices', { farmId: input.farmId })).toMatchObject([
      { name: 'Linux', versions: [{ number: 1 }] },
      { name: 'Windows', versions: [{ number: 3 }, { number: 1 }] },
    ])
  })

  test.each([
    [{ name: ' ' }, /Enter a name/],
    [{ name: 'x'.repeat(65) }, /at most 64/],
    [{ name: 'a\u001bb' }, /control characters/],
    [{ timeoutMs: 999 }, /timeoutMs/],
    [{ timeoutMs: 3_600_001 }, /timeoutMs/],
    [{ entries: [] }, /at least one entry/],
    [{ entries: Array.from({ length: 17 }, () => localDisk) }, /at most 16 entries/],
    [{ entries: [{ ...localDisk, title: '' }] }, /Enter a title/],
    [{ entries: [{ ...localDisk, title: 'Große Platte' }] }, /plain ASCII letters/],
    [{ entries: [{ ...localDisk, title: 'a\nb' }] }, /plain ASCII letters/],
    [{ entries: [{ ...localDisk, title: 'x'.repeat(65) }] }, /at most 64/],
    [{ defaultEntry: 2 }, /default must be one of the entries/],
  ])('with %j is refused with a sentence', async (changes, sentence) => {
    const answer = await refused(changes)
    expect([answer.status, answer.code]).toEqual([400, 'invalid'])
    expect(answer.text).toMatch(sentence)
  })

  test('names no vDisk or version of another farm, which is refused like one that there is not', async () => {
    const { tenant: foreign } = await site().other('owner')
    const { vdiskId } = site().tenant
    const entry = (starts: object) => ({ entries: [{ title: 'X', starts: { kind: 'version', ...starts } }] })
    const [other, absent] = [
      await refused(entry({ vdiskId: foreign.vdiskId, versionId: null })),
      await refused(entry({ vdiskId: randomUUID(), versionId: null })),
    ]
    expect([other.status, other.text]).toEqual([400, absent.text])
    const version = await refused(entry({ vdiskId, versionId: foreign.versionId }))
    expect(version).toMatchObject({ status: 400, code: 'invalid' })
    expect(version.text).toContain('names a version that does not belong to its vDisk')
  })

  test('of a name that the farm has already is refused, also for two at once', async () => {
    const [first, second] = await Promise.all([refused({}), refused({})])
    expect([first.status, second.status].sort()).toEqual([200, 409])
    const other = await create({ name: 'Other' })
    const { id: menuId, revision } = other
    expect(await refused({ menuId, revision }, 'bootMenu.update')).toMatchObject({
      status: 409,
      code: 'conflict',
    })
  })

  test('that somebody else changed meanwhile is not written over', async () => {
    const { id: menuId, revision } = await create()
    expect((await refused({ menuId, revision }, 'bootMenu.update')).status).toBe(200)
    const second = await refused({ menuId, revision }, 'bootMenu.update')
    expect([second.status, second.code]).toEqual([409, 'conflict'])
    expect(second.text).toContain('This boot menu was changed in the meantime')
  })

  test('is removed only when nobody shows it', async () => {
    const { id: menuId } = await create()
    await ofCollection(menuId)
    await ofDevice({ choice: 'own', menuId })
    const inUse = await site().tryMutation('bootMenu.remove', { menuId })
    expect(inUse).toMatchObject({ status: 409, code: 'conflict' })
    expect(inUse.text).toContain('the collection Lab and the device pc-01')
    await ofCollection(null)
    await ofDevice({ choice: 'none' })
    expect(await site().mutate('bootMenu.remove', { menuId })).toEqual({ removed: true })
    expect(await site().query('bootMenu.list', {})).toMatchObject({ items: [] })
  })
})

describe('who shows it', () => {
  test('a device its own before its collection’s, or none at all', async () => {
    const [menu, own] = [await create(), await create({ name: 'Own' })]
    const shown = async () => {
      const { menus, devices } = await site().state()
      const device = await site().query<DeviceDetail>('device.get', { deviceId: site().deviceId })
      expect(devices[0]?.menuId ?? null).toBe(device.bootMenu.shown?.id ?? null)
      return { name: device.bootMenu.shown?.name, inState: menus?.length ?? 0, others: devices[1]?.menuId }
    }
    expect(await shown()).toEqual({ name: undefined, inState: 0, others: undefined })
    await ofCollection(menu.id)
    expect(await shown()).toEqual({ name: 'Lab menu', inState: 1, others: menu.id })
    await ofDevice({ choice: 'own', menuId: own.id })
    expect(await shown()).toEqual({ name: 'Own', inState: 2, others: menu.id })
    await ofDevice({ choice: 'none' })
    expect(await shown()).toEqual({ name: undefined, inState: 1, others: menu.id })
    await ofDevice({ choice: 'collection' })
    expect(await shown()).toEqual({ name: 'Lab menu', inState: 1, others: menu.id })
    expect(await site().query('bootMenu.get', { menuId: menu.id })).toMatchObject({
      collections: [{ name: 'Lab', deviceCount: 6 }],
      devices: [],
    })
  })

  test('is not a menu of another organization or farm', async () => {
    const other = await site().other('owner')
    const { tenant } = other
    const entries = [localDisk]
    const foreign = await other.mutate<MenuDetail>('bootMenu.create', {
      ...input,
      farmId: tenant.farmId,
      entries,
    })
    const { collectionId } = site().tenant
    const { deviceId } = site()
    for (const menuId of [foreign.id, randomUUID()]) {
      const answers = [
        await site().tryMutation('collection.setBootMenu', { collectionId, menuId }),
        await site().tryMutation('device.setBootMenu', { deviceId, menu: { choice: 'own', menuId } }),
      ]
      for (const { status, text } of answers) {
        expect(status).toBe(400)
        expect(text).toContain('The farm has no such boot menu')
      }
    }
  })
})

describe('in the desired state', () => {
  test('versions are named by id, the newest as it is then, and their vDisks are there after the collections’', async () => {
    const { vdiskId, versionIds } = await addVdisk([1, 2])
    // Older than the collection's: an unregistered device boots the first vDisk of a state.
    await site().api.db.vdisk.updateMany({ where: { id: vdiskId }, data: { createdAt: new Date(0) } })
    const fixed = { title: 'Windows 1', starts: { kind: 'version', vdiskId, versionId: versionIds[0] } }
    const menu = await create({ entries: [newestOf(vdiskId, 'Windows'), fixed, localDisk], defaultEntry: 1 })
    await ofCollection(menu.id)
    const before = await site().state()
    expect(before.menus).toEqual([
      {
        id: menu.id,
        timeoutMs: 10_000,
        defaultEntry: 1,
        entries: [
          { kind: 'version', title: 'Windows', versionId: versionIds[1], followsVdisk: true },
          { kind: 'version', title: 'Windows 1', versionId: versionIds[0] },
          { kind: 'local_disk', title: 'Local disk' },
        ],
      },
    ])
    expect(before.vdisks.map(({ id }) => id)).toEqual([site().tenant.vdiskId, vdiskId])
    const { organizationId } = site().tenant
    const files = { sizeBytes: 512, diskPath: 'w/3', commandLine: '' }
    const third = await site().api.db.vdiskVersion.create({
      data: { organizationId, vdiskId, number: 3, ...files },
    })
    const { menus, counter } = await site().state()
    expect(menus?.[0]?.entries[0]).toMatchObject({ versionId: third.id })
    expect(counter).toBe(before.counter + 1)
  })

  test('an entry whose vDisk has no version is left out, and the first one left stands for it', async () => {
    const { vdiskId } = await addVdisk([])
    const menu = await create({ entries: [localDisk, newestOf(vdiskId, 'Windows')], defaultEntry: 1 })
    expect(menu.entries[1]?.starts).toMatchObject({ versionNumber: null })
    const empty = await create({ name: 'Empty', entries: [newestOf(vdiskId)] })
    await ofCollection(menu.id)
    await ofDevice({ choice: 'own', menuId: empty.id })
    const { menus, devices } = await site().state()
    expect(menus).toEqual([
      {
        id: menu.id,
        timeoutMs: 10_000,
        defaultEntry: 0,
        entries: [{ kind: 'local_disk', title: 'Local disk' }],
      },
    ])
    expect([devices[0]?.menuId, devices[1]?.menuId]).toEqual([undefined, menu.id])
  })

  test('a device whose collection boots no vDisk has the version of its menu’s default', async () => {
    const { organizationId, collectionId, vdiskId, versionId } = site().tenant
    const { vdiskId: windowsId, versionIds } = await addVdisk([1])
    await site().api.db.collection.updateMany({ where: { organizationId }, data: { vdiskId: null } })
    expect((await site().state()).devices).toEqual([])
    const entries = [newestOf(vdiskId), newestOf(windowsId, 'Windows'), localDisk]
    await ofCollection((await create({ entries, defaultEntry: 1 })).id, collectionId)
    expect(new Set((await site().state()).devices.map((device) => device.versionId))).toEqual(new Set(versionIds))
    await ofCollection((await create({ name: 'Own disk first', entries, defaultEntry: 2 })).id)
    expect((await site().state()).devices[0]?.versionId).toBe(versionId)
  })

  test('a change wakes the waiting edges of the sites where it is shown', async () => {
    const menu = await create()
    await ofCollection(menu.id)
    const { counter } = await site().state()
    const listening = site().api.nextListener()
    const waiting = site().edge.state(`1.${counter}`, 25_000)
    await listening
    const { id: menuId, revision } = menu
    await site().mutate('bootMenu.update', { ...input, menuId, revision, timeoutMs: 5_000 })
    expect(JSON.stringify((await waiting).body)).toContain('\\"timeoutMs\\":5000')
  })

  test('a menu of another site of the farm is not there', async () => {
    const { organizationId, farmId } = site().tenant
    const { db } = site().api
    const second = await db.site.create({ data: { organizationId, farmId, name: 'Second', timeZone: 'UTC' } })
    await ofCollection((await create()).id)
    const token = await makeJoinToken(site().api, { ...site().tenant, siteId: second.id })
    const edge = await EdgeClient.enrolled(site().api.url, token)
    expect(JSON.stringify((await edge.state('0.0', 0)).body)).not.toContain('menus')
  })
})

describe('a version that a menu starts', () => {
  const menuOfVersion = async () => {
    const { vdiskId, versionIds } = await addVdisk([1, 2])
    const starts = { kind: 'version', vdiskId, versionId: versionIds[0] ?? '' }
    await create({ entries: [{ title: 'Windows 1', starts }, newestOf(vdiskId, 'Windows')] })
    return starts
  }

  test('is named with the menu on its vDisk’s page', async () => {
    const { vdiskId } = await menuOfVersion()
    expect((await site().query<VdiskDetail>('vdisk.get', { vdiskId })).menus).toMatchObject([
      { name: 'Lab menu', versionNumbers: [1, null] },
    ])
  })

  test('is not removed from the database, nor is its vDisk: a conflict with a sentence', async () => {
    const { vdiskId, versionId } = await menuOfVersion()
    const { db } = site().api
    for (const remove of [
      () => db.vdiskVersion.deleteMany({ where: { id: versionId } }),
      () => db.vdisk.deleteMany({ where: { id: vdiskId } }),
    ]) {
      const error = toAppError(await remove().catch((thrown: unknown) => thrown))
      expect([error.code, error.publicText]).toEqual(['conflict', expect.stringContaining('a boot menu')])
    }
  })

  test('of the demo is followed by the one that takes its place', async () => {
    const { organizationId, farmId } = site().tenant
    const context = { db: site().api.db, clock: site().api.clock.read }
    const files = { sizeBytes: 512, diskPath: 'd', kernelPath: null, initrdPath: null, commandLine: '' }
    const wanted = (commandLine: string) => ({
      name: 'Machines',
      unknownDevices: 'boot' as const,
      needsJoinToken: false,
      devices: [],
      vdisk: { ...files, name: 'Debian', commandLine },
    })
    await ensureDemoSite(context, { organizationId, farmId }, wanted(''))
    const vdisk = await context.db.vdisk.findFirstOrThrow({
      where: { organizationId, name: 'Debian' },
      select: { id: true, versions: { select: { id: true } } },
    })
    const starts = { kind: 'version', vdiskId: vdisk.id, versionId: vdisk.versions[0]?.id }
    const menu = await create({ entries: [{ title: 'Debian', starts }] })
    await ensureDemoSite(context, { organizationId, farmId }, wanted('quiet'))
    expect((await site().query<MenuDetail>('bootMenu.get', { menuId: menu.id })).entries).toMatchObject([
      { starts: { versionNumber: 2 } },
    ])
  })
})
