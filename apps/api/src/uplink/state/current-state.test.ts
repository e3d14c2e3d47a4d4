import { openDb } from '@bootfarm/db'
import { desiredState, type StateEnvelope } from '@bootfarm/proto/uplink'
import { stateSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { EdgeClient } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { mutate } from '../../../test/test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../../test/test-tenant.ts'
import { openNotifications } from '../../context/notifications.ts'
import { parseStatePair } from './site-facts.ts'
import { waitForState } from './wait-for-state.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string
let edge: EdgeClient
let round = 0

beforeAll(async () => {
  api = await startTestApi()
})
beforeEach(async () => {
  round += 1
  tenant = await createTenant(api, `own-${round}`)
  cookie = await signInAs(api, tenant.organizationId, 'operator')
  edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
})
afterAll(() => api.close())

function snapshotOf(body: unknown) {
  return desiredState.parse(JSON.parse((body as StateEnvelope).payload))
}

test('the first request gets the whole state, signed by the key pinned at enrolment', async () => {
  const { signingKey } = (await edge.enrol(await makeJoinToken(api, tenant))).body as {
    signingKey: { id: string; publicKey: string }
  }
  const { status, body } = await edge.state('0.0', 0)
  const envelope = body as unknown as StateEnvelope
  expect(status).toBe(200)
  expect(envelope.keyId).toBe(signingKey.id)
  expect(verifyText(stateSignedText(envelope.payload), envelope.signature, signingKey.publicKey)).toBe(true)
  const state = snapshotOf(body)
  expect(state).toMatchObject({
    edgeId: edge.edgeId,
    organizationId: tenant.organizationId,
    siteId: tenant.siteId,
    incarnation: 1,
    counter: 1,
    unknownDevices: 'ignore',
    powerOns: [],
    vdisks: [{ id: tenant.vdiskId, name: 'Linux', versions: [{ id: tenant.versionId, sizeBytes: 419_430_400 }] }],
  })
  expect(state.devices.map(({ mac, versionId }) => [mac, versionId])).toEqual(
    tenant.macs.map((mac) => [mac, tenant.versionId]),
  )
})

test('the same content keeps its counter and its bytes', async () => {
  const first = await edge.state('0.0', 0)
  api.clock.advance(1_000)
  expect(await edge.state('0.0', 0)).toEqual(first)
  expect(await edge.state('1.1', 0)).toEqual({ status: 204, body: null })
})

test('who asks for what is later than anything is told that there is no news', async () => {
  const last = '9'.repeat(15)
  expect(await edge.state(`${last}.${last}`, 0)).toEqual({ status: 204, body: null })
})

test('two requests at once agree on one counter', async () => {
  const answers = await Promise.all([1, 2, 3, 4].map(() => edge.state('0.0', 0)))
  for (const answer of answers) expect(answer).toEqual(answers[0])
})

test('a change wakes the waiting edge, with the next counter', async () => {
  await edge.state('0.0', 0)
  const listening = api.nextListener()
  const waiting = edge.state('1.1', 25_000)
  await listening
  const deviceId = tenant.deviceIds[0] ?? ''
  const { powerOnId } = await mutate<{ powerOnId: string }>(api, cookie, 'device.bootAgain', { deviceId })
  const { status, body } = await waiting
  expect(status).toBe(200)
  expect(snapshotOf(body)).toMatchObject({
    counter: 2,
    powerOns: [{ id: powerOnId, deviceId, mac: tenant.macs[0] }],
  })
})

test('a power-on is gone after a minute, and the counter has grown', async () => {
  await mutate(api, cookie, 'device.bootAgain', { deviceId: tenant.deviceIds[0] ?? '' })
  expect(snapshotOf((await edge.state('0.0', 0)).body).powerOns).toHaveLength(1)
  api.clock.advance(60_000)
  expect(snapshotOf((await edge.state('1.1', 0)).body)).toMatchObject({ counter: 2, powerOns: [] })
})

test('the newest version is what devices boot, and older ones stay', async () => {
  await edge.state('0.0', 0)
  const { organizationId, vdiskId } = tenant
  const files = { sizeBytes: 512, diskPath: 'a/2/disk.raw', commandLine: '' }
  const second = await api.db.vdiskVersion.create({ data: { organizationId, vdiskId, number: 2, ...files } })
  const state = snapshotOf((await edge.state('1.1', 0)).body)
  expect(state.vdisks[0]?.versions.map(({ number }) => number)).toEqual([2, 1])
  expect(new Set(state.devices.map(({ versionId }) => versionId))).toEqual(new Set([second.id]))
})

test('a restored control plane’s new incarnation counts as later than any counter', async () => {
  await edge.state('0.0', 0)
  const where = { id: tenant.organizationId }
  await api.db.organization.update({ where, data: { stateIncarnation: 2 } })
  expect(snapshotOf((await edge.state('1.900', 0)).body)).toMatchObject({ incarnation: 2 })
})

/** The statements of a poll, its answer, and what its telemetry is told, without the HTTP around it. */
async function pollWith(after: string) {
  const texts: string[] = []
  const { db } = openDb(api.serverDatabaseUrl, ({ text }) => texts.push(text))
  const { organizationId, siteId } = tenant
  const notifications = await openNotifications(api.serverDatabaseUrl)
  const place = { organizationId, siteId, edgeId: edge.edgeId, bootEpoch: 1, counter: 1 }
  const options = {
    notifications,
    after: parseStatePair(after),
    base: undefined,
    waitMs: 0,
    dashboardUrl: null,
    signal: new AbortController().signal,
    onAcknowledged: () => undefined,
  }
  const envelope = await waitForState({ db, clock: api.clock.read }, place, options)
  await notifications.close()
  await db.$disconnect()
  return {
    envelope,
    reads: texts.filter((text) => /^\s*(with|select|update|insert)/i.test(text) && !/set_config/.test(text)),
  }
}

test('a poll that finds nothing new reads one row, however much the state has', async () => {
  await edge.state('0.0', 0)
  await edge.state('1.1', 0)
  const { envelope, reads } = await pollWith('1.1')
  expect(envelope).toBeNull()
  expect(reads).toHaveLength(1)
  expect(reads[0]).not.toMatch(/\b(device|vdisk|payload)\b/)
})

test('a state that was made and not taken is given again without reading what it is made of', async () => {
  await edge.state('0.0', 0)
  const { envelope, reads } = await pollWith('0.0')
  expect(snapshotOf(envelope).counter).toBe(1)
  expect(reads.join()).not.toMatch(/\bdevice\b/)
})

test('a state is read again within 20 minutes, even if its site’s version stayed where it was', async () => {
  await edge.state('0.0', 0)
  await api.db.$transaction([
    api.db.$executeRaw`set local session_replication_role = replica`,
    api.db.$executeRaw`update site set name = 'Quietly renamed' where id = ${tenant.siteId}::uuid`,
  ])
  expect(await edge.state('1.1', 0)).toEqual({ status: 204, body: null })
  api.clock.advance(20 * 60_000)
  expect(snapshotOf((await edge.state('1.1', 0)).body)).toMatchObject({ counter: 2, siteName: 'Quietly renamed' })
})

test('transactions that change a site at once wait for none of each other, and none is missed in either order', async () => {
  await edge.state('0.0', 0)
  const rename = async (index: number, name: string, until: Promise<void>, done: () => void) =>
    api.db.$transaction(async (transaction) => {
      await transaction.device.updateMany({ where: { id: tenant.deviceIds[index] ?? '' }, data: { name } })
      done()
      await until
    })
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const [firstMade, secondMade] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const older = rename(0, 'first', first.promise, firstMade.resolve)
  await firstMade.promise
  const newer = rename(1, 'second', second.promise, secondMade.resolve)
  // The other one is still open.
  await secondMade.promise
  second.resolve()
  await newer
  const names = async (after: string) =>
    snapshotOf((await edge.state(after, 0)).body).devices.flatMap(({ name }) => (/first|second/.test(name) ? name : []))
  expect(await names('1.1')).toEqual(['second'])
  first.resolve()
  await older
  expect(await names('1.2')).toEqual(['first', 'second'])
  expect(await edge.state('1.3', 0)).toEqual({ status: 204, body: null })
})

test('a site’s version has as many rows as there were transactions at once', async () => {
  const rowsOf = () => api.db.stateVersion.count({ where: { siteId: tenant.siteId } })
  const before = await rowsOf()
  for (let index = 0; index < 5; index++)
    await api.db.site.updateMany({ where: { id: tenant.siteId }, data: { name: `Site ${index}` } })
  expect(await rowsOf()).toBe(before)
})

test('an edge that was moved reads the state of its new site, whose version may be the same number', async () => {
  await edge.state('0.0', 0)
  const { organizationId, farmId } = tenant
  const other = await api.db.site.create({ data: { organizationId, farmId, name: 'Other', timeZone: 'UTC' } })
  await api.db.edge.updateMany({ where: { id: edge.edgeId }, data: { siteId: other.id } })
  await api.db.$executeRaw`update state_version set raised = (select site_version from desired_state
    where edge_id = ${edge.edgeId}::uuid) where site_id = ${other.id}::uuid`
  expect(snapshotOf((await edge.state('1.1', 0)).body)).toMatchObject({ counter: 2, siteId: other.id })
})

test.each(['after=1&waitMs=0', 'after=1.1&waitMs=25001', 'after=1.1', 'after=-1.1&waitMs=0'])(
  'the query %s is refused',
  async (search) => {
    const { body } = await edge.send({ method: 'GET', path: `/edge/v1/state?${search}` })
    expect(body).toMatchObject({ status: 400, code: 'invalid_body' })
  },
)
