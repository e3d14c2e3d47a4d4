import { randomUUID } from 'node:crypto'
import { edgeOnlineWithinMs } from '@bootfarm/proto/uplink'
import { publicKeyOf } from '@bootfarm/proto/uplink-signature'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { EdgeClient, heartbeatWith } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../../test/test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../../test/test-tenant.ts'
import type { EdgeDetail } from '../../edge/schema.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string
let round = 0

beforeAll(async () => {
  api = await startTestApi()
})
// A site has a bounded number of edges, so each test has a separate site.
beforeEach(async () => {
  round += 1
  tenant = await createTenant(api, `own-${round}`)
  cookie = await signInAs(api, tenant.organizationId, 'viewer')
})
afterAll(() => api.close())

const newEdge = async () => EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
const refusal = (status: number, code: string) => expect.objectContaining({ status, code, type: 'about:blank' })

describe('enrolment', () => {
  test('answers with the identity and the key to pin', async () => {
    const edge = new EdgeClient(api.url)
    const { status, body } = await edge.enrol(await makeJoinToken(api, tenant))
    expect(status).toBe(201)
    expect(body).toEqual({
      edgeId: expect.any(String),
      organizationId: tenant.organizationId,
      siteId: tenant.siteId,
      siteName: `Site of own-${round}`,
      signingKey: { id: expect.any(String), publicKey: expect.any(String) },
    })
  })

  test('a lost answer is given again to the same key, also after the hour', async () => {
    const token = await makeJoinToken(api, tenant)
    const edge = new EdgeClient(api.url)
    const first = await edge.enrol(token)
    api.clock.advance(3_600_001)
    expect(await edge.enrol(token)).toEqual(first)
  })

  test('a used token is refused to another key, also when both come at once', async () => {
    const token = await makeJoinToken(api, tenant)
    const answers = await Promise.all([1, 2, 3, 4].map(() => new EdgeClient(api.url).enrol(token)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    const refused = answers.filter(({ status }) => status === 409)
    for (const { body } of refused) expect(body).toEqual(refusal(409, 'join_token_used'))
  })

  test('a token ends with the right of the person who created it', async () => {
    const { organizationId, siteId } = tenant
    const owner = await signInAs(api, organizationId, 'owner')
    const made = async () => {
      const admin = await signInAs(api, organizationId, 'admin')
      const { user } = await query<{ user: { id: string } }>(api, admin, 'session.me')
      const { token } = await mutate<{ token: string }>(api, admin, 'edge.createJoinToken', { siteId })
      return { token, userId: user.id }
    }
    const [demoted, removed] = [await made(), await made()]
    await api.db.roleGrant.updateMany({ where: { userId: demoted.userId }, data: { role: 'operator' } })
    await mutate(api, owner, 'member.remove', { userId: removed.userId })
    for (const { token } of [demoted, removed]) {
      const { status, body } = await new EdgeClient(api.url).enrol(token)
      expect([status, body]).toEqual([403, refusal(403, 'join_token_expired')])
    }
    expect(await api.db.edge.count({ where: { organizationId } })).toBe(0)
  })

  test('an unused token is listed without its secret, and revoked', async () => {
    const { organizationId, siteId } = tenant
    const admin = await signInAs(api, organizationId, 'admin')
    const { id, token } = await mutate<{ id: string; token: string }>(api, admin, 'edge.createJoinToken', { siteId })
    const list = () => query<{ items: { id: string }[] }>(api, admin, 'edge.joinTokens', { siteId })
    const { items } = await list()
    expect(items[0]).toEqual({
      id,
      createdAt: expect.any(String),
      expiresAt: expect.any(String),
      createdByName: 'A admin',
    })
    await mutate(api, admin, 'edge.revokeJoinToken', { siteId, joinTokenId: id })
    expect((await list()).items.some((one) => one.id === id)).toBe(false)
    const { body } = await new EdgeClient(api.url).enrol(token)
    expect(body).toEqual(refusal(403, 'join_token_expired'))

    const used = await mutate<{ id: string; token: string }>(api, admin, 'edge.createJoinToken', { siteId })
    await EdgeClient.enrolled(api.url, used.token)
    const input = { siteId, joinTokenId: used.id }
    const late = await callProcedure(api, { path: 'edge.revokeJoinToken', type: 'mutation', input, cookie: admin })
    expect(late.code).toBe('conflict')
  })

  test('an unknown token is refused', async () => {
    const { body } = await new EdgeClient(api.url).enrol('bfj_unknown')
    expect(body).toEqual(refusal(403, 'join_token_unknown'))
  })

  test('an expired token is refused', async () => {
    const token = await makeJoinToken(api, tenant)
    api.clock.advance(3_600_000)
    const { body } = await new EdgeClient(api.url).enrol(token)
    expect(body).toEqual(refusal(403, 'join_token_expired'))
  })

  test('a key that the edge does not hold is refused, and the token stays unused', async () => {
    const token = await makeJoinToken(api, tenant)
    const strange = publicKeyOf(new Uint8Array(32).fill(7))
    const { body } = await new EdgeClient(api.url).enrol(token, { publicKey: strange })
    expect(body).toEqual(refusal(401, 'signature_invalid'))
    expect((await new EdgeClient(api.url).enrol(token)).status).toBe(201)
  })

  test('an edge that lost its identity but not its key comes back as itself with a new token', async () => {
    const edge = await newEdge()
    const again = await edge.enrol(await makeJoinToken(api, tenant))
    expect(again.body).toMatchObject({ edgeId: edge.edgeId })
  })

  test.each([{ version: 2 }, { publicKey: 'AAAA' }, { hostname: 'caf\u00e9' }, { arch: 'mips' }])(
    'refuses %j',
    async (changes) => {
      const token = await makeJoinToken(api, tenant)
      const { body } = await new EdgeClient(api.url).enrol(token, changes as never)
      expect(body).toEqual(refusal(400, 'invalid_body'))
    },
  )
})

describe('a signed request', () => {
  test('of an unknown edge is refused', async () => {
    const edge = new EdgeClient(api.url)
    edge.edgeId = randomUUID()
    expect((await edge.heartbeat()).body).toEqual(refusal(401, 'edge_unknown'))
  })

  test.each([
    ['another counter', { 'bootfarm-counter': '99' }],
    ['another epoch', { 'bootfarm-epoch': '2' }],
    ['no signature', { 'bootfarm-signature': '' }],
    ['a counter that is no number', { 'bootfarm-counter': '1e3' }],
    ['an edge id that is none', { 'bootfarm-edge': '../../..' }],
  ])('with %s in its headers is refused', async (_what, headers) => {
    const edge = await newEdge()
    const path = '/edge/v1/heartbeat'
    const { body } = await edge.send({ method: 'POST', path, body: JSON.stringify(heartbeatWith()), headers })
    expect(body).toEqual(refusal(401, 'signature_invalid'))
  })

  test('signed by another edge is refused', async () => {
    const [edge, other] = [await newEdge(), await newEdge()]
    const thief = new EdgeClient(api.url, other.seed)
    thief.edgeId = edge.edgeId
    expect((await thief.heartbeat()).body).toEqual(refusal(401, 'signature_invalid'))
  })

  test('of a revoked edge is refused on every route', async () => {
    const edge = await newEdge()
    await api.db.edge.updateMany({ where: { id: edge.edgeId }, data: { revokedAt: api.clock.now } })
    const answers = [await edge.heartbeat(), await edge.state('0.0', 0), await edge.reports(1, [])]
    for (const { body } of answers) expect(body).toEqual(refusal(403, 'edge_revoked'))
  })

  test('of a lower epoch than the highest seen is refused, except reports', async () => {
    const edge = await newEdge()
    edge.bootEpoch = 5
    expect((await edge.heartbeat()).status).toBe(200)
    edge.bootEpoch = 4
    expect((await edge.heartbeat()).body).toEqual(refusal(409, 'stale_epoch'))
    expect((await edge.state('0.0', 0)).body).toEqual(refusal(409, 'stale_epoch'))
    const gap = { seq: 1, type: 'gap' as const, untilSeq: 3, reason: 'disk full' }
    expect((await edge.reports(1, [gap])).body).toEqual({ bootEpoch: 4, ackedSeq: 3 })
  })

  test('that is too large is refused', async () => {
    const edge = await newEdge()
    const body = 'x'.repeat(70_000)
    expect((await edge.send({ method: 'POST', path: '/edge/v1/heartbeat', body })).body).toEqual(
      refusal(413, 'too_large'),
    )
    const reports = { method: 'POST' as const, path: '/edge/v1/reports', body: 'x'.repeat(512 * 1024 + 1) }
    expect((await edge.send(reports)).body).toEqual(refusal(413, 'too_large'))
  })

  test('whose body is not JSON, or not what the route takes, is refused without a stack', async () => {
    const edge = await newEdge()
    for (const body of ['{', '[]', '{"agentVersion":1}', '']) {
      const answer = await edge.send({ method: 'POST', path: '/edge/v1/heartbeat', body })
      expect(answer.body).toEqual(refusal(400, 'invalid_body'))
      expect(JSON.stringify(answer.body)).not.toMatch(/stack|node_modules|\.ts/)
    }
  })
})

describe('heartbeat', () => {
  test('makes the edge online with its facts, and silence makes it offline', async () => {
    const edge = await newEdge()
    const get = () => query<EdgeDetail>(api, cookie, 'edge.get', { edgeId: edge.edgeId })
    expect(await get()).toMatchObject({ online: false, heartbeatAt: null, uptimeMs: null })
    await edge.heartbeat({
      agentVersion: '0.2.0',
      devicesBooting: 3,
      reportBacklog: 7,
      clockUnixMs: api.clock.now.getTime() - 90_000,
      ignored: { 'tftp.bad_opcode': 2, 'dhcp.too_short': 5 },
      state: { incarnation: 1, counter: 4 },
    })
    expect(await get()).toMatchObject({
      online: true,
      agentVersion: '0.2.0',
      devicesBooting: 3,
      reportBacklog: 7,
      clockOffsetMs: -90_000,
      ignored: [
        { reason: 'dhcp.too_short', count: 5 },
        { reason: 'tftp.bad_opcode', count: 2 },
      ],
      appliedState: { incarnation: 1, counter: 4 },
    })
    api.clock.advance(edgeOnlineWithinMs - 1)
    expect(await get()).toMatchObject({ online: true })
    api.clock.advance(1)
    expect(await get()).toMatchObject({ online: false })
  })

  test('that is replayed, or comes late, changes nothing', async () => {
    const edge = await newEdge()
    edge.bootEpoch = 2
    edge.counter = 10
    await edge.heartbeat({ devicesBooting: 1 })
    edge.counter = 10 - 1
    expect((await edge.heartbeat({ devicesBooting: 9 })).status).toBe(200)
    edge.counter = 4
    expect((await edge.heartbeat({ devicesBooting: 9 })).status).toBe(200)
    const seen = await query<EdgeDetail>(api, cookie, 'edge.get', { edgeId: edge.edgeId })
    expect(seen.devicesBooting).toBe(1)
  })

  test('of a new epoch counts although its counter begins again', async () => {
    const edge = await newEdge()
    edge.counter = 100
    await edge.heartbeat({ devicesBooting: 1 })
    edge.bootEpoch = 2
    edge.counter = 0
    await edge.heartbeat({ devicesBooting: 2 })
    const seen = await query<EdgeDetail>(api, cookie, 'edge.get', { edgeId: edge.edgeId })
    expect([seen.devicesBooting, seen.bootEpoch]).toEqual([2, 2])
  })

  test('answers with the pair of the last desired state', async () => {
    const edge = await newEdge()
    expect((await edge.heartbeat()).body).toMatchObject({ state: { incarnation: 0, counter: 0 } })
    await edge.state('0.0', 0)
    expect((await edge.heartbeat()).body).toMatchObject({ state: { incarnation: 1, counter: 1 } })
  })
})
