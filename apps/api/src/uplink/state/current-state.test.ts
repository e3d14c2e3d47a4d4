import { desiredState, type StateEnvelope } from '@bootfarm/proto/uplink'
import { stateSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { EdgeClient } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { mutate } from '../../../test/test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../../test/test-tenant.ts'

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

test.each(['after=1&waitMs=0', 'after=1.1&waitMs=25001', 'after=1.1', 'after=-1.1&waitMs=0'])(
  'the query %s is refused',
  async (search) => {
    const { body } = await edge.send({ method: 'GET', path: `/edge/v1/state?${search}` })
    expect(body).toMatchObject({ status: 400, code: 'invalid_body' })
  },
)
