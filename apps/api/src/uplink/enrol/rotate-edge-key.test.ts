import { randomBytes } from 'node:crypto'
import { type DesiredState, desiredState, type StateEnvelope, signingKeyText } from '@bootfarm/proto/uplink'
import { publicKeyOf, stateSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { EdgeClient } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { TestSite } from '../../../test/test-site.ts'
import { makeJoinToken } from '../../../test/test-tenant.ts'
import type { EdgeDetail } from '../../edge/schema.ts'

let api: TestApi
let site: TestSite
let round = 0
beforeAll(async () => {
  api = await startTestApi({ acceptedVersions: { oldest: 2, newest: 5 } })
})
beforeEach(async () => {
  round += 1
  site = await TestSite.open(api, `identity-${round}`, 'admin')
})
afterAll(() => api.close())

const code = ({ body }: { body: Record<string, unknown> | null }) => body?.code
const getEdge = () => site.query<EdgeDetail>('edge.get', { edgeId: site.edge.edgeId })
const envelope = async () => (await site.edge.state('0.0', 0)).body as unknown as StateEnvelope
const stateOf = ({ payload }: StateEnvelope): DesiredState => desiredState.parse(JSON.parse(payload))

describe('revocation', () => {
  test('ends an open long poll at once', async () => {
    const { state } = (await site.edge.heartbeat()).body as {
      state: { incarnation: number; counter: number }
    }
    expect(state).toBeDefined()
    const { incarnation, counter } = stateOf(await envelope())
    const listening = api.nextListener()
    const poll = site.edge.state(`${incarnation}.${counter}`, 25_000)
    await listening
    await site.revokeEdge(site.edge.edgeId)
    expect(await poll).toMatchObject({ status: 403, body: { code: 'edge_revoked' } })
  })
})

describe('a new key of an edge', () => {
  const rotate = (from: Uint8Array, to = randomBytes(32)) => {
    const statement = site.edge.statement(from, to)
    site.edge.seed = to
    return { statement, to }
  }

  test('is taken by the old key’s statement, and the old one no longer', async () => {
    const old = site.edge.seed
    const { statement, to } = rotate(old)
    expect(await site.edge.rotateKey([statement])).toEqual({
      status: 200,
      body: { publicKey: publicKeyOf(to) },
    })
    expect((await site.edge.heartbeat()).status).toBe(200)
    expect((await getEdge()).keyRotatedAt).toBe('2026-11-20T12:00:00.000Z')
    site.edge.seed = old
    expect(code(await site.edge.heartbeat())).toBe('signature_invalid')
  })

  test('whose answer was lost is told again', async () => {
    const { statement } = rotate(site.edge.seed)
    const answers = [await site.edge.rotateKey([statement]), await site.edge.rotateKey([statement])]
    expect(answers[1]).toEqual(answers[0])
  })

  test('is found over all that a restored control plane has not heard of', async () => {
    const first = rotate(site.edge.seed)
    const second = rotate(first.to)
    expect((await site.edge.rotateKey([first.statement, second.statement])).status).toBe(200)
    expect((await site.edge.heartbeat()).status).toBe(200)
  })

  test('is refused by another’s statement, out of order, of an edge unknown, and once revoked', async () => {
    const old = site.edge.seed
    const { statement, to } = rotate(old)
    const stranger = site.edge.statement(randomBytes(32), to)
    expect(code(await site.edge.rotateKey([stranger]))).toBe('signature_invalid')
    expect(code(await site.edge.rotateKey([statement, statement]))).toBe('signature_invalid')
    const tampered = { ...statement, newPublicKey: publicKeyOf(randomBytes(32)) }
    expect(code(await site.edge.rotateKey([tampered]))).toBe('signature_invalid')
    expect(code(await site.edge.rotateKey([]))).toBe('invalid_body')
    // Sent by a caller who has read a statement, but does not have the key.
    site.edge.seed = old
    expect(code(await site.edge.rotateKey([statement]))).toBe('signature_invalid')
    expect((await site.edge.heartbeat()).status).toBe(200)
    await site.revokeEdge(site.edge.edgeId)
    site.edge.seed = to
    expect(code(await site.edge.rotateKey([statement]))).toBe('edge_revoked')
    site.edge.edgeId = '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c7e9'
    expect(code(await site.edge.rotateKey([statement]))).toBe('edge_unknown')
  })

  test('is ordered by the state until it is there', async () => {
    expect(stateOf(await envelope()).rotateKey).toBeUndefined()
    await site.mutate('edge.rotateKey', { edgeId: site.edge.edgeId })
    expect(stateOf(await envelope()).rotateKey).toBe(publicKeyOf(site.edge.seed))
    expect(await getEdge()).toMatchObject({ keyOrdered: true, keyRotatedAt: null })
    await site.edge.rotateKey([rotate(site.edge.seed).statement])
    expect(stateOf(await envelope()).rotateKey).toBeUndefined()
    expect(await getEdge()).toMatchObject({ keyOrdered: false })
  })
})

describe('a new signing key of the organization', () => {
  test('signs at once, and is reached from each earlier one by a chain', async () => {
    const before = await envelope()
    const first = await api.db.signingKey.findFirstOrThrow({
      where: { organizationId: site.tenant.organizationId },
    })
    for (let count = 0; count < 2; count++) await site.mutate('edge.rotateSigningKey', undefined)
    const after = await envelope()
    expect(stateOf(after).counter).toBeGreaterThan(stateOf(before).counter)
    let key = first.publicKey
    for (const statement of after.keys ?? []) {
      expect(statement.previousPublicKey).toBe(key)
      const text = signingKeyText(site.tenant.organizationId, statement)
      expect(verifyText(text, statement.signature, key)).toBe(true)
      key = statement.publicKey
    }
    expect(after.keys).toHaveLength(2)
    expect(verifyText(stateSignedText(after.payload), after.signature, key)).toBe(true)
    expect(after.keyId).toBe(after.keys?.at(-1)?.id)
    // A retired key cannot sign: its private half is deleted.
    const retired = await api.db.signingKey.findMany({
      where: { organizationId: site.tenant.organizationId, NOT: { publicKey: key } },
    })
    expect(retired.map(({ seed }) => seed.length)).toEqual([0, 0])
  })

  test('is what an edge that joins then pins', async () => {
    const { publicKey } = await site.mutate<{ publicKey: string }>('edge.rotateSigningKey', undefined)
    const edge = new EdgeClient(api.url)
    const { body } = await edge.enrol(await makeJoinToken(api, site.tenant))
    expect(body).toMatchObject({ signingKey: { publicKey } })
  })

  test('that two make at once has one chain', async () => {
    await Promise.all([1, 2, 3].map(() => site.mutate('edge.rotateSigningKey', undefined)))
    expect((await envelope()).keys).toHaveLength(3)
  })
})

test('an edge that was off for 400 days simply comes back', async () => {
  await site.edge.heartbeat()
  await site.mutate('edge.rotateSigningKey', undefined)
  api.clock.advance(400 * 86_400_000)
  site.edge.bootEpoch += 1
  expect((await site.edge.heartbeat({ clockUnixMs: 0 })).status).toBe(200)
  expect((await envelope()).keys).toHaveLength(1)
  expect((await getEdge()).online).toBe(true)
})

describe('an edge’s version', () => {
  test.each([
    [null, 'edge_too_old', /requires 2 or newer/],
    [1, 'edge_too_old', /uses version 1/],
    [6, 'edge_too_new', /supports 5 at most/],
  ])('%s is refused, and its page says so', async (version, refusal, detail) => {
    site.edge.uplinkVersion = version
    for (const answer of [await site.edge.heartbeat(), await site.edge.state('0.0', 0)])
      expect(answer).toMatchObject({
        status: 426,
        body: { code: refusal, oldestVersion: 2, newestVersion: 5, detail: expect.stringMatching(detail) },
      })
    expect((await getEdge()).refused).toMatchObject({ code: refusal, version: version ?? 1 })
  })

  test.each([2, 5])('%s is taken, and what was refused before is forgotten', async (version) => {
    site.edge.uplinkVersion = 1
    await site.edge.heartbeat()
    site.edge.uplinkVersion = version
    expect((await site.edge.heartbeat()).status).toBe(200)
    expect((await getEdge()).refused).toBeNull()
  })

  test('of a signature that is wrong is not looked at', async () => {
    site.edge.uplinkVersion = 1
    site.edge.seed = randomBytes(32)
    expect(code(await site.edge.heartbeat())).toBe('signature_invalid')
    expect((await getEdge()).refused).toBeNull()
  })
})

test('an edge says what it runs on, and what it says besides is ignored', async () => {
  const machine = {
    loadAverage: 0.52,
    processors: 4,
    memoryTotalBytes: 8_000_000_000,
    memoryAvailableBytes: 6_000_000_000,
    fileCacheBytes: 3_000_000_000,
    storeTotalBytes: 500_000_000_000,
    storeFreeBytes: 120_000_000_000,
  }
  expect((await getEdge()).machine).toBeNull()
  expect((await site.edge.heartbeat({ machine, ofANewerEdge: true } as never)).status).toBe(200)
  expect((await getEdge()).machine).toEqual(machine)
})
