import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { bootWith, discoveredWith, EdgeClient } from '../../test/edge-client.ts'
import { openSubscription } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { createTenant, makeJoinToken, signInAs } from '../../test/test-tenant.ts'
import type { AdoptionRule } from './adoption-rule.ts'
import type { DiscoveredDeviceView, RulesView } from './schema.ts'

const site = useTestSite('admin')

const macOf = (number: number) => `52:54:00:00:00:${number.toString(16).padStart(2, '0')}`
const list = async (input: object = {}) =>
  (await site().query<{ items: DiscoveredDeviceView[] }>('discovered.list', input)).items
const macsOf = async (input: object = {}) => (await list(input)).map(({ mac }) => mac)
const deviceNames = async () =>
  (await site().query<{ items: { name: string; mac: string }[] }>('device.list', { search: '52:54' })).items.map(
    ({ name, mac }) => [name, mac],
  )
const report = (...numbers: number[]) =>
  site().discover(...numbers.map((number) => discoveredWith({ mac: macOf(number) })))
const place = () => ({ siteId: site().tenant.siteId, collectionId: site().tenant.collectionId })
const adopt = (discoveredIds: string[], namePattern: string) =>
  site().mutate<{ adopted: { name: string; mac: string }[]; missingCount: number }>('discovered.adopt', {
    ...place(),
    discoveredIds,
    namePattern,
  })
const idOf = async (number: number) => (await list()).find(({ mac }) => mac === macOf(number))?.id ?? 'none'

describe('a device that nobody has registered', () => {
  test('is discovered with its own texts', async () => {
    const device = discoveredWith({
      mac: macOf(1),
      hostName: 'Lab-PC1',
      relay: '10.20.0.1',
      asked: 'http',
      requests: 7,
    })
    await site().discover(device)
    expect(await list()).toMatchObject([
      {
        mac: macOf(1),
        machineId: device.machineId,
        vendorClass: device.vendorClass,
        clientArch: 7,
        relay: '10.20.0.1',
        asked: 'http',
        requests: 7,
        firstSeenAt: '2026-11-20T11:59:30.000Z',
        edgeId: site().edge.edgeId,
        ignoredAt: null,
        suggestedName: 'lab-pc1',
      },
    ])
  })

  test('stays one while it keeps asking, and keeps its earlier texts', async () => {
    await report(1)
    const { vendorClass: _none, ...again } = discoveredWith({ mac: macOf(1), requests: 9, asked: 'tftp' })
    await site().discover({ ...again, lastSeenUnixMs: site().api.clock.now.getTime() })
    expect(await list()).toMatchObject([
      {
        requests: 9,
        asked: 'tftp',
        vendorClass: 'PXEClient:Arch:00007:UNDI:003016',
        firstSeenAt: '2026-11-20T11:59:30.000Z',
        lastSeenAt: site().api.clock.now.toISOString(),
      },
    ])
  })

  test('was not seen after its report, even if the edge’s clock is wrong', async () => {
    await site().discover(discoveredWith({ mac: macOf(1), lastSeenUnixMs: Number.MAX_SAFE_INTEGER }))
    expect((await list())[0]?.lastSeenAt).toBe(site().api.clock.now.toISOString())
  })

  test('is none where it is registered at the site already', async () => {
    await site().discover(discoveredWith({ mac: site().tenant.macs[0] ?? '' }))
    expect(await list()).toEqual([])
  })

  test('is gone once it boots where unknown ones may', async () => {
    await report(1)
    await site().api.db.site.updateMany({ where: { id: place().siteId }, data: { unknownDevices: 'boot' } })
    await site().report(bootWith({ id: randomUUID(), mac: macOf(1) }))
    expect(await list()).toEqual([])
  })

  test('is one of at most 1,000 of its site that wait: who was seen longest ago goes, but none that is ignored', async () => {
    await report(1)
    await site().mutate('discovered.ignore', { ...place(), discoveredIds: [await idOf(1)], ignored: true })
    const many = Array.from({ length: 1010 }, (_, number) =>
      discoveredWith({
        mac: `52:54:01:00:${(number >> 8).toString(16).padStart(2, '0')}:${(number & 255).toString(16).padStart(2, '0')}`,
        lastSeenUnixMs: Date.parse('2026-11-20T11:00:00Z') + number,
      }),
    )
    for (let from = 0; from < many.length; from += 100) await site().discover(...many.slice(from, from + 100))
    const left = await site().api.db.discoveredDevice.findMany({
      where: { siteId: place().siteId, ignoredAt: null },
      orderBy: { lastSeenAt: 'asc' },
      select: { mac: true },
    })
    expect([left.length, left[0]?.mac]).toEqual([1000, '52:54:01:00:00:0a'])
    expect(await macsOf({ state: 'ignored' })).toEqual([macOf(1)])
  })

  test('is sent to open pages at once', async () => {
    const { api, cookie } = site()
    const events = await openSubscription(api, { path: 'boot.onChange', cookie })
    expect((await events.next()).data).toEqual({ kind: 'synced' })
    await report(1)
    expect((await events.next()).data).toEqual({ kind: 'discovered' })
    events.close()
  })
})

test('how many wait is counted over all sites, without those that are ignored', async () => {
  const count = () => site().query('discovered.waitingCount')
  expect(await count()).toEqual({ count: 0 })
  await report(1, 2, 3)
  await site().mutate('discovered.ignore', { ...place(), discoveredIds: [await idOf(2)], ignored: true })
  expect(await count()).toEqual({ count: 2 })
})

describe('the list', () => {
  test('is newest first and continues after the cursor', async () => {
    const first = Date.parse('2026-11-20T11:00:00Z')
    await site().discover(
      ...[1, 2, 3].map((number) => discoveredWith({ mac: macOf(number), firstSeenUnixMs: first + number })),
    )
    const page = await site().query<{ items: DiscoveredDeviceView[]; nextCursor: string }>('discovered.list', {
      limit: 2,
    })
    expect(page.items.map(({ mac }) => mac)).toEqual([macOf(3), macOf(2)])
    expect(await macsOf({ limit: 2, cursor: page.nextCursor })).toEqual([macOf(1)])
  })

  test('is searched by MAC address and by devices’ texts, and filtered by site', async () => {
    await site().discover(
      discoveredWith({ mac: macOf(1), vendorClass: '<script>alert(1)</script>' }),
      discoveredWith({ mac: macOf(2), hostName: 'Reception' }),
    )
    expect(await macsOf({ search: '00-01' })).toEqual([macOf(1)])
    expect(await macsOf({ search: 'reCEPTion' })).toEqual([macOf(2)])
    expect(await macsOf({ search: '<script>' })).toEqual([macOf(1)])
    expect(await macsOf({ search: '%' })).toEqual([])
    expect(await macsOf({ siteId: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701' })).toEqual([])
  })
})

describe('adopting', () => {
  test('registers the device, which is in the edge’s next state', async () => {
    await report(1)
    const { counter } = await site().state()
    const listening = site().api.nextListener()
    const waiting = site().edge.state(`1.${counter}`, 25_000)
    await listening
    expect(await adopt([await idOf(1)], 'reception')).toMatchObject({
      adopted: [{ name: 'reception', mac: macOf(1) }],
      missingCount: 0,
    })
    expect((await waiting).status).toBe(200)
    expect((await site().state()).devices).toContainEqual(
      expect.objectContaining({
        mac: macOf(1),
        name: 'reception',
        enabled: true,
        versionId: site().tenant.versionId,
      }),
    )
    expect(await list()).toEqual([])
    expect(await deviceNames()).toEqual([['reception', macOf(1)]])
  })

  test('gives several names in their order, past those that are taken', async () => {
    await report(1, 2, 3)
    await adopt([await idOf(2)], 'lab-02')
    await adopt([await idOf(3), await idOf(1)], 'lab-{nn}')
    expect(await deviceNames()).toEqual([
      ['lab-01', macOf(3)],
      ['lab-02', macOf(2)],
      ['lab-03', macOf(1)],
    ])
  })

  test('of devices that no longer wait registers none and reports their number', async () => {
    await report(1)
    const id = await idOf(1)
    await adopt([id], 'a')
    expect(await adopt([id], 'b')).toEqual({ adopted: [], missingCount: 1 })
  })

  test('by two people at once gives no name and no device twice', async () => {
    await report(1, 2, 3, 4)
    const ids = (await list()).map(({ id }) => id)
    await Promise.all([adopt(ids, 'lab-{n}'), adopt([...ids].reverse(), 'lab-{n}')])
    const names = await deviceNames()
    expect(names.map(([name]) => name)).toEqual(['lab-1', 'lab-2', 'lab-3', 'lab-4'])
    expect(new Set(names.map(([, mac]) => mac)).size).toBe(4)
  })

  test('is refused for a name that is taken, one name for several, and a bad name', async () => {
    await report(1, 2)
    const discoveredIds = (await list()).map(({ id }) => id)
    const refused = (changes: object) =>
      site().tryMutation('discovered.adopt', { ...place(), discoveredIds, ...changes })
    expect((await refused({ namePattern: 'lab' })).text).toContain('Use {n} or {mac} in the name pattern')
    expect((await refused({ namePattern: 'pc-01', discoveredIds: discoveredIds.slice(0, 1) })).text).toContain(
      'This site already has a device named pc-01.',
    )
    expect(await refused({ namePattern: '"><img src=x>' })).toMatchObject({ status: 400, code: 'invalid' })
    expect(await list()).toHaveLength(2)
  })

  test('into another organization’s site or collection is refused as if it were not there', async () => {
    await report(1)
    const other = await createTenant(site().api, 'other-adopt')
    const input = { ...place(), discoveredIds: [await idOf(1)], namePattern: 'x' }
    expect(await site().tryMutation('discovered.adopt', { ...input, collectionId: other.collectionId })).toMatchObject({
      status: 404,
    })
    const stranger = await signInAs(site().api, other.organizationId, 'owner')
    const theirs = { ...input, siteId: other.siteId, collectionId: other.collectionId }
    expect((await site().tryMutation('discovered.adopt', theirs, stranger)).data).toEqual({
      adopted: [],
      missingCount: 1,
    })
    expect(await macsOf()).toEqual([macOf(1)])
  })

  test('is not for viewers, who may look', async () => {
    await report(1)
    const viewer = await signInAs(site().api, site().tenant.organizationId, 'viewer')
    const input = { ...place(), discoveredIds: [await idOf(1)], namePattern: 'x' }
    expect(await site().tryMutation('discovered.adopt', input, viewer)).toMatchObject({
      status: 403,
      code: 'forbidden',
    })
  })
})

describe('ignoring', () => {
  test('tells the edge, is shown apart, and is taken back', async () => {
    await report(1, 2)
    const discoveredIds = [await idOf(2)]
    await site().mutate('discovered.ignore', { ...place(), discoveredIds, ignored: true })
    expect((await site().state()).ignoredMacs).toEqual([macOf(2)])
    expect([await macsOf(), await macsOf({ state: 'ignored' })]).toEqual([[macOf(1)], [macOf(2)]])
    await report(2)
    expect(await macsOf()).toEqual([macOf(1)])
    await site().mutate('discovered.ignore', { ...place(), discoveredIds, ignored: false })
    expect((await site().state()).ignoredMacs).toBeUndefined()
    expect(await macsOf()).toHaveLength(2)
  })
})

describe('rules', () => {
  const anything = {
    macPrefix: null,
    vendorClassPrefix: null,
    vendorClassContains: null,
    architecture: null,
    relayNetwork: null,
  }
  const rules = () => site().query<RulesView>('discovered.rules', { siteId: place().siteId })
  const setRules = async (...wanted: AdoptionRule[]) =>
    site().mutate<RulesView>('discovered.setRules', {
      siteId: place().siteId,
      rules: wanted,
      revision: (await rules()).revision,
    })
  const adoptAll = (conditions: Partial<AdoptionRule['conditions']> = {}): AdoptionRule => ({
    conditions: { ...anything, ...conditions },
    action: { kind: 'adopt', namePattern: 'auto-{nn}', collectionId: place().collectionId },
  })

  test('adopt and ignore reported devices, once', async () => {
    await setRules(
      { conditions: { ...anything, macPrefix: macOf(2) }, action: { kind: 'ignore' } },
      adoptAll({ architecture: 'x64_uefi' }),
    )
    await site().discover(
      ...[1, 2, 3].map((number) => discoveredWith({ mac: macOf(number) })),
      discoveredWith({ mac: macOf(4), clientArch: 0 }),
    )
    await report(1, 2, 3)
    expect(await deviceNames()).toEqual([
      ['auto-01', macOf(1)],
      ['auto-02', macOf(3)],
    ])
    expect([await macsOf(), await macsOf({ state: 'ignored' })]).toEqual([[macOf(4)], [macOf(2)]])
    expect((await site().state()).ignoredMacs).toEqual([macOf(2)])
  })

  test('of two edges that report the same device at once adopt it once', async () => {
    const second = await site().enrolEdge()
    await setRules(adoptAll())
    const reports = [1, 2, 3].map((number) => ({
      type: 'discovered' as const,
      device: discoveredWith({ mac: macOf(number) }),
    }))
    await Promise.all([site().send(reports), site().send([...reports].reverse(), second)])
    const names = await deviceNames()
    expect(names.map(([name]) => name)).toEqual(['auto-01', 'auto-02', 'auto-03'])
    expect(new Set(names.map(([, mac]) => mac)).size).toBe(3)
  })

  test('copy a template device’s settings', async () => {
    const { api, tenant } = site()
    const [templateDeviceId = ''] = tenant.deviceIds
    const vault = await api.db.collection.create({
      data: { organizationId: tenant.organizationId, siteId: tenant.siteId, name: 'Vault' },
    })
    await api.db.device.updateMany({
      where: { id: templateDeviceId },
      data: { enabled: false, bootProgramSet: 'ipxe', bootMenuChoice: 'none', collectionId: vault.id },
    })
    const action = { kind: 'copy', namePattern: '{mac}', templateDeviceId } as const
    await setRules({ conditions: anything, action })
    await report(1)
    const made = await api.db.device.findFirstOrThrow({
      where: { siteId: tenant.siteId, mac: macOf(1) },
      select: { name: true, enabled: true, bootProgramSet: true, bootMenuChoice: true, collectionId: true },
    })
    expect(made).toEqual({
      name: '52-54-00-00-00-01',
      enabled: false,
      bootProgramSet: 'ipxe',
      bootMenuChoice: 'none',
      collectionId: vault.id,
    })
  })

  test('preview their effect on waiting devices, and have exactly that effect', async () => {
    const firstSeenUnixMs = Date.parse('2026-11-20T11:00:00Z')
    for (const number of [1, 2])
      await site().discover(discoveredWith({ mac: macOf(number), firstSeenUnixMs: firstSeenUnixMs + number }))
    await setRules(adoptAll({ macPrefix: macOf(2) }))
    const { devices } = await site().query<{ devices: object[] }>('discovered.previewRules', {
      siteId: place().siteId,
    })
    expect(devices).toMatchObject([
      { mac: macOf(1), outcome: 'none', ruleNumber: null, name: null },
      { mac: macOf(2), outcome: 'adopt', ruleNumber: 1, name: 'auto-01' },
    ])
    expect(await deviceNames()).toEqual([])
    const apply = () => site().mutate('discovered.applyRules', { siteId: place().siteId })
    expect(await apply()).toEqual({ adoptedCount: 1, ignoredCount: 0 })
    expect(await apply()).toEqual({ adoptedCount: 0, ignoredCount: 0 })
    expect(await deviceNames()).toEqual([['auto-01', macOf(2)]])
  })

  test('leave what was adopted alone when they change', async () => {
    await setRules(adoptAll())
    await report(1)
    await setRules({ conditions: anything, action: { kind: 'ignore' } })
    await report(1, 2)
    expect(await deviceNames()).toEqual([['auto-01', macOf(1)]])
    expect(await macsOf({ state: 'ignored' })).toEqual([macOf(2)])
  })

  test('changed by somebody else meanwhile are not overwritten', async () => {
    const { revision } = await rules()
    await setRules(adoptAll())
    const input = { siteId: place().siteId, rules: [], revision }
    expect(await site().tryMutation('discovered.setRules', input)).toMatchObject({
      status: 409,
      code: 'conflict',
    })
    expect((await rules()).rules).toHaveLength(1)
  })

  test('that name another organization’s collection or device are refused', async () => {
    const other = await createTenant(site().api, 'other-rules')
    const { revision } = await rules()
    const [templateDeviceId = ''] = other.deviceIds
    for (const action of [
      { kind: 'adopt', namePattern: '{n}', collectionId: other.collectionId },
      { kind: 'copy', namePattern: '{n}', templateDeviceId },
    ]) {
      const input = { siteId: place().siteId, revision, rules: [{ conditions: anything, action }] }
      expect(await site().tryMutation('discovered.setRules', input)).toMatchObject({ status: 404 })
    }
  })

  test('adopt no more than a site may have', async () => {
    const { api, tenant } = site()
    const { organizationId, siteId, collectionId } = tenant
    await api.db.device.createMany({
      data: Array.from({ length: 993 }, (_, number) => ({
        organizationId,
        siteId,
        collectionId,
        name: `x-${number}`,
        mac: `52:54:02:00:${(number >> 8).toString(16).padStart(2, '0')}:${(number & 255).toString(16).padStart(2, '0')}`,
      })),
    })
    await setRules(adoptAll())
    await report(1, 2, 3)
    expect(await macsOf()).toHaveLength(2)
    const { devices } = await site().query<{ devices: { outcome: string }[] }>('discovered.previewRules', {
      siteId,
    })
    expect(devices.map(({ outcome }) => outcome)).toEqual(['full', 'full'])
  })

  test('of a site are nothing to another’s devices', async () => {
    await setRules(adoptAll())
    const other = await createTenant(site().api, 'other-site')
    const theirs = await EdgeClient.enrolled(site().api.url, await makeJoinToken(site().api, other))
    await site().send([{ type: 'discovered', device: discoveredWith({ mac: macOf(9) }) }], theirs)
    expect(await site().api.db.device.count({ where: { mac: macOf(9) } })).toBe(0)
  })
})
