import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addOwner } from '../../test/add-owner.ts'
import { bootReports, bootWith, discoveredWith, EdgeClient } from '../../test/edge-client.ts'
import { inputOfSample, samples } from '../../test/procedure-samples.ts'
import type { SampleTenant } from '../../test/sample.ts'
import { createSampleTenant } from '../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate } from '../../test/test-client.ts'
import { makeJoinToken, sessionCookie } from '../../test/test-tenant.ts'
import { procedurePolicies } from '../http/trpc/policies.ts'
import { isMemberPolicy } from '../http/trpc/policy.ts'
import { keepAllSchedules } from '../schedule/keep-schedules.ts'
import { purgeOldDeletions } from '../trash/purge-deletion.ts'
import { trashKeptDays } from '../trash/schema.ts'

// Checks the entry of every mutation, of edges, and of jobs: actor, action, time, address, before and after.

const setUpMsMax = 120_000
let api: TestApi
let tenant: SampleTenant
let edge: EdgeClient
let cookie: string
let userId: string
let discoveredIds: string[]

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createSampleTenant(api, 'own')
  ;({ userId } = await addOwner(api, tenant.organizationId, 'The owner'))
  cookie = await sessionCookie(api, userId)
  edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const strangers = [1, 2, 3].map((number) => discoveredWith({ mac: `02:bf:00:00:09:0${number}` }))
  await edge.reports(
    1,
    strangers.map((device, index) => ({ seq: index + 1, type: 'discovered', device })),
  )
  discoveredIds = (await api.db.discoveredDevice.findMany({ select: { id: true } })).map(({ id }) => id)
}, setUpMsMax)
afterAll(() => api.close())

/** A change for samples whose input would change nothing. */
const newName = 'Another name'
const changing: Record<string, () => object> = {
  'organization.rename': () => ({ name: newName }),
  'organization.askDeletion': () => ({ name: newName }),
  'farm.update': () => ({ name: randomUUID() }),
  'site.update': () => ({ timeZone: 'Europe/Paris' }),
  'site.move': () => ({ farmId: tenant.spares.objects.farm[0], revision: 2 }),
  'site.setCacheCopies': () => ({ cacheCopyHours: 24 }),
  'site.setCapture': () => ({ capture: 'always' }),
  'edge.update': () => ({ name: newName }),
  'edge.setShare': () => ({ weight: 20, revision: 2 }),
  'edge.drain': () => ({ draining: true, revision: 3 }),
  'edge.revoke': () => ({ name: newName, revision: 4 }),
  'collection.update': () => ({ name: randomUUID() }),
  'collection.setBootMenu': () => ({ menuId: tenant.spareMenuIds[0] }),
  'device.update': () => ({ enabled: false }),
  'device.setBootMenu': () => ({ menu: { choice: 'none' } }),
  'device.changeMany': () => ({ preview: false }),
  'device.importCsv': () => ({ csv: 'name,tags\npc-03,new\n', preview: false }),
  'discovered.adopt': () => ({ discoveredIds: [discoveredIds[0]] }),
  'discovered.ignore': () => ({ discoveredIds: [discoveredIds[1]] }),
  'discovered.setRules': () => ({ rules: [ignoreAll] }),
  'vdisk.update': () => ({ note: 'new' }),
  'vdisk.updateVersion': () => ({ note: 'new' }),
  'cleaning.set': () => ({ mode: 'daily' }),
  'store.update': () => ({ note: 'new' }),
  'webhook.update': () => ({ name: newName }),
  'webhook.redeliver': () => ({}),
  'schedule.setEnabled': () => ({ enabled: false }),
}
const ignoreAll = {
  conditions: {
    macPrefix: '02:bf:00:00:09',
    vendorClassPrefix: null,
    vendorClassContains: null,
    architecture: null,
    relayNetwork: null,
  },
  action: { kind: 'ignore' },
}

/** A site may only have sets that its edges have reported, and there is only the built-in one. */
const asBefore = new Set(['site.setBootProgramSet', 'collection.setBootProgramSet', 'device.setBootProgramSet'])

const made = /\.(create\w*|register\w*|restore\w*|ping|adopt)$/
const gone = /\.(remove\w*|purge|leave)$/

const mutations = procedurePolicies().filter(({ type, policy }) => type === 'mutation' && isMemberPolicy(policy))

async function entriesOf(work: () => Promise<unknown>) {
  const known = await api.db.auditEntry.findMany({ select: { id: true } })
  await work()
  return api.db.auditEntry.findMany({ where: { id: { notIn: known.map(({ id }) => id) } } })
}

describe.each(mutations)('$path', ({ path, type }) => {
  test('is in the audit log: who, what, when, from where, before and after', async () => {
    // A caller who ends the own membership is replaced.
    const caller = samples[path]?.isLast ? await addOwner(api, tenant.organizationId, 'The owner') : { userId }
    const entries = await entriesOf(async () => {
      const sample = inputOfSample(path, tenant, samples[path]?.ownId?.(tenant))
      const input = { ...sample, ...changing[path]?.() }
      const { status, text } = await callProcedure(api, {
        path,
        type,
        input,
        cookie: await sessionCookie(api, caller.userId),
      })
      expect([status, text]).toEqual([200, text])
    })
    expect(entries).not.toEqual([])
    for (const entry of entries) {
      expect(entry).toMatchObject({
        organizationId: tenant.organizationId,
        action: path,
        at: api.clock.now,
        actorKind: 'person',
        actorId: caller.userId,
        actorName: 'The owner',
        address: '127.0.0.1',
        requestId: expect.any(String),
        objectKind: expect.any(String),
        objectId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        objectName: expect.stringMatching(/./),
      })
      expect(Object.keys(entry.after ?? {}), 'its service says nothing of its own').not.toContain('asked')
      if (made.test(path)) expect([entry.before, entry.after]).toEqual([null, expect.any(Object)])
      else if (gone.test(path)) expect([entry.before, entry.after]).toEqual([expect.any(Object), null])
      else expect([entry.before, entry.after]).toEqual([expect.any(Object), expect.any(Object)])
      if (!asBefore.has(path)) expect(entry.before).not.toEqual(entry.after)
    }
  })
})

test('what changes nothing is no change', async () => {
  const { farmId } = tenant
  const { name, revision } = await api.db.farm.findFirstOrThrow({ where: { id: farmId } })
  expect(await entriesOf(() => mutate(api, cookie, 'farm.update', { farmId, name, revision }))).toEqual([])
})

describe('an edge', () => {
  test('is in the audit log as itself when it enrols, and by the name that it gave', async () => {
    const token = await makeJoinToken(api, tenant)
    let enrolled: EdgeClient | undefined
    const entries = await entriesOf(async () => {
      enrolled = await EdgeClient.enrolled(api.url, token)
    })
    expect(entries).toMatchObject([
      {
        actorKind: 'edge',
        actorId: enrolled?.edgeId,
        actorName: 'edge-1',
        address: '127.0.0.1',
        action: 'edge.enrol',
        objectKind: 'edge',
        objectId: enrolled?.edgeId,
        siteId: tenant.siteId,
        before: null,
        after: { agentVersion: '0.1.0' },
      },
    ])
    expect(JSON.stringify(entries)).not.toContain(token)
  })

  test('is there with both keys when it has a new one', async () => {
    const next = new Uint8Array(32).fill(7)
    const statement = edge.statement(edge.seed, next)
    const entries = await entriesOf(async () => {
      edge.seed = next
      expect((await edge.rotateKey([statement])).status).toBe(200)
    })
    const keys = {
      before: { publicKey: statement.oldPublicKey },
      after: { publicKey: statement.newPublicKey },
    }
    expect(entries).toMatchObject([{ actorKind: 'edge', actorId: edge.edgeId, action: 'edge.takeNewKey', ...keys }])
  })

  test('is who registers and ignores by a site’s rules', async () => {
    const device = discoveredWith({ mac: '02:bf:00:00:09:77' })
    const entries = await entriesOf(() => edge.reports(4, [{ seq: 4, type: 'discovered', device }]))
    expect(entries).toMatchObject([
      {
        actorKind: 'edge',
        actorId: edge.edgeId,
        action: 'discovered.ignoreByRule',
        objectName: device.mac,
        before: { ignored: false },
        after: { ignored: true },
      },
    ])
  })

  test('is who registers a machine that boots where unknown ones may', async () => {
    const where = { organizationId_id: { organizationId: tenant.organizationId, id: tenant.siteId } }
    await api.db.site.update({ where, data: { unknownDevices: 'boot' } })
    const boots = bootReports(5, [bootWith({ id: randomUUID(), mac: '02:bf:00:00:09:88' })])
    expect(await entriesOf(() => edge.reports(5, boots))).toMatchObject([
      { actorKind: 'edge', action: 'device.adoptByBoot', objectName: '02-bf-00-00-09-88', before: null },
    ])
    expect(await entriesOf(() => edge.reports(5, boots))).toEqual([])
  })
})

describe('a job', () => {
  const context = () => ({ db: api.serverDb, clock: api.clock.read })

  test('that begins a schedule’s run is in the audit log, once', async () => {
    const { id } = await mutate<{ id: string }>(api, cookie, 'schedule.create', {
      ...inputOfSample('schedule.create', tenant, tenant.farmId),
      when: { kind: 'once', at: '2026-11-20T12:30' },
      timeZone: 'UTC',
    })
    api.clock.advance(45 * 60_000)
    const entries = await entriesOf(async () => {
      await keepAllSchedules(context())
      await keepAllSchedules(context())
    })
    expect(entries.filter(({ objectId }) => objectId === id)).toMatchObject([
      { actorKind: 'system', actorName: 'schedules', action: 'schedule.beginRun', before: { runId: null } },
    ])
  })

  test('that empties the trash is there for each thing that goes', async () => {
    const [deviceId] = tenant.spares.objects.device
    await mutate(api, cookie, 'device.remove', { deviceId })
    await api.db.deletion.updateMany({
      where: { objectId: { not: deviceId ?? '' } },
      data: { deletedAt: new Date('2100-01-01') },
    })
    api.clock.advance((trashKeptDays + 1) * 86_400_000)
    expect(await entriesOf(() => purgeOldDeletions(context()))).toMatchObject([
      { actorKind: 'system', action: 'trash.purge', objectKind: 'device', objectId: deviceId, after: null },
    ])
  })
})
