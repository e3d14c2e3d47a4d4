import { stateDigest } from '@bootfarm/proto/state-delta'
import { applyStateDelta } from '@bootfarm/proto/testing/apply-state-delta'
import {
  desiredState,
  type StateDeltaEnvelope,
  type StateEnvelope,
  stateDeltaEnvelope,
  stateEnvelope,
} from '@bootfarm/proto/uplink'
import { stateSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import { beforeEach, expect, test } from 'vitest'
import { heartbeatWith } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'

const site = useTestSite('operator')
const deviceCount = 60
let base: string

beforeEach(async () => {
  const { organizationId, siteId, collectionId } = site().tenant
  await site().api.db.device.createMany({
    data: Array.from({ length: deviceCount }, (_, index) => ({
      organizationId,
      siteId,
      collectionId,
      name: `seat ${index} Übung`,
      mac: `02:bf:02:00:00:${index.toString(16).padStart(2, '0')}`,
    })),
  })
  base = (await poll('0.0')).whole().payload
})

/** Sends a poll, as edges of before did or with a heartbeat. */
async function poll(after: string, named?: string, method: 'GET' | 'POST' = 'GET') {
  const path = `/edge/v1/state?after=${after}&waitMs=0${named === undefined ? '' : `&base=${named}`}`
  const body = method === 'POST' ? { body: JSON.stringify(heartbeatWith()) } : {}
  const answer = await site().edge.send({ method, path, ...body })
  return {
    ...answer,
    whole: (): StateEnvelope => stateEnvelope.strict().parse(answer.body),
    delta: (): StateDeltaEnvelope => stateDeltaEnvelope.strict().parse(answer.body),
  }
}

const rename = (index: number, name: string) =>
  site().api.db.device.updateMany({ where: { id: site().tenant.deviceIds[index] ?? '' }, data: { name } })

const publicKeyOf = async (keyId: string) =>
  (await site().api.db.signingKey.findFirstOrThrow({ where: { id: keyId } })).publicKey

test.each(['GET', 'POST'] as const)(
  'a %s that names its state gets the change of a device as a delta',
  async (method) => {
    await rename(2, 'ënde')
    const { delta, signature, keyId } = (await poll('1.1', stateDigest(base), method)).delta()
    const payload = applyStateDelta(base, delta) ?? ''
    expect(verifyText(stateSignedText(payload), signature, await publicKeyOf(keyId))).toBe(true)
    const state = desiredState.parse(JSON.parse(payload))
    expect(state).toMatchObject({ counter: 2, edgeId: site().edge.edgeId })
    expect(state.devices.filter(({ name }) => name === 'ënde')).toHaveLength(1)
    expect(JSON.stringify(delta).length).toBeLessThan(700)
    expect(payload.length).toBeGreaterThan(8_000)
    // One change on the other, from the state that the edge made.
    await rename(3, 'last')
    const next = (await poll('1.2', stateDigest(payload), method)).delta()
    expect(JSON.parse(applyStateDelta(payload, next.delta) ?? '')).toMatchObject({ counter: 3 })
  },
)

test('a poll that names no state, or another one, gets the whole', async () => {
  for (const [index, named] of [undefined, '0'.repeat(64), stateDigest(`${base} `)].entries()) {
    await rename(0, `name ${index}`)
    expect(JSON.parse((await poll(`1.${index + 1}`, named)).whole().payload)).toMatchObject({ counter: index + 2 })
  }
})

test('a state that was made and not taken is whole, since what it replaced is not kept', async () => {
  await rename(0, 'first')
  const lost = (await poll('1.1', stateDigest(base))).delta()
  const { payload } = (await poll('1.1', stateDigest(base))).whole()
  expect(applyStateDelta(base, lost.delta)).toBe(payload)
})

test('a change of most devices is the whole state', async () => {
  await site().api.db.device.updateMany({ where: { siteId: site().tenant.siteId }, data: { enabled: false } })
  const { payload } = (await poll('1.1', stateDigest(base))).whole()
  expect(desiredState.parse(JSON.parse(payload)).devices.every(({ enabled }) => !enabled)).toBe(true)
})

test('a base that is no digest is refused', async () => {
  for (const named of ['', 'x', 'A'.repeat(64), '0'.repeat(65)])
    expect((await poll('1.1', named)).body).toMatchObject({ status: 400, code: 'invalid_body' })
})

test('nothing new is no answer, whatever is named', async () => {
  expect(await poll('1.1', '0'.repeat(64))).toMatchObject({ status: 204, body: null })
  expect(await poll('1.1', stateDigest(base))).toMatchObject({ status: 204, body: null })
})
