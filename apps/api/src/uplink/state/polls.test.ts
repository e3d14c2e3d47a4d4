import { openDb } from '@bootfarm/db'
import type { StateEnvelope } from '@bootfarm/proto/uplink'
import { desiredState } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { EdgeClient, heartbeatWith } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { mutate } from '../../../test/test-client.ts'
import { seenEdge } from '../../../test/test-site.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../../test/test-tenant.ts'
import { Polls } from './polls.ts'

let api: TestApi
let tenant: TestTenant
let edge: EdgeClient
let round = 0
const statements: string[] = []

beforeAll(async () => {
  api = await startTestApi({ onQuery: ({ text }) => statements.push(text) })
})
beforeEach(async () => {
  round += 1
  tenant = await createTenant(api, `polls-${round}`)
  edge = await enrolled()
})
afterAll(() => api.close())

const enrolled = async (at = tenant) => EdgeClient.enrolled(api.url, await makeJoinToken(api, at))
const none = { status: 204, body: null }
const refused = (status: number, code: string) => ({ status, body: expect.objectContaining({ code }) })
const rowOf = (of: EdgeClient) => api.db.edge.findFirstOrThrow({ where: { id: of.edgeId } })
const snapshotOf = (body: unknown) => desiredState.parse(JSON.parse((body as StateEnvelope).payload))
const revoke = async (of: EdgeClient) => {
  const cookie = await signInAs(api, tenant.organizationId, 'admin')
  await mutate(api, cookie, 'edge.revoke', await seenEdge(api, of.edgeId))
}

/** What is each edge's alone. */
const own = ({ id, name, publicKey, enrolledAt }: Awaited<ReturnType<typeof rowOf>>) => ({
  id,
  name,
  publicKey,
  enrolledAt,
})

/** What this process would remember of the edge, with the next counter. */
async function remembered(of: EdgeClient) {
  const { organizationId, siteId, publicKey } = await rowOf(of)
  of.counter += 1
  return { organizationId, siteId, edgeId: of.edgeId, publicKey, bootEpoch: of.bootEpoch, counter: of.counter }
}

describe('a poll that carries a heartbeat', () => {
  test('is announced by the answer to a heartbeat', async () => {
    expect((await edge.heartbeat()).body).toMatchObject({ pollWaitMs: 28_000, nextMs: 30_000 })
  })

  test('keeps the heartbeat while it waits, and gets the state of a change', async () => {
    const first = snapshotOf((await edge.poll('0.0', 0)).body)
    expect(first).toMatchObject({ incarnation: 1, counter: 1 })
    const listening = api.nextListener()
    const waiting = edge.poll('1.1', 28_000, { devicesBooting: 3, agentVersion: '0.2.0', clockUnixMs: 7 })
    await listening
    const heartbeatOf = async () => (await rowOf(edge)).heartbeat
    await expect.poll(heartbeatOf).toMatchObject({ devicesBooting: 3 })
    expect(await rowOf(edge)).toMatchObject({
      agentVersion: '0.2.0',
      heartbeatEpoch: 1n,
      heartbeatCounter: BigInt(edge.counter),
      heartbeatAt: api.clock.now,
      clockOffsetMs: BigInt(7 - api.clock.now.getTime()),
      sealKey: null,
    })
    await api.db.site.updateMany({ where: { id: tenant.siteId }, data: { name: 'Renamed' } })
    expect(snapshotOf((await waiting).body)).toMatchObject({ counter: 2, siteName: 'Renamed' })
    expect(await edge.poll('1.2', 0)).toEqual(none)
    const { acknowledgedAt } = await api.db.desiredState.findFirstOrThrow({ where: { edgeId: edge.edgeId } })
    expect(acknowledgedAt).toEqual(api.clock.now)
  })

  test('keeps of a heartbeat what a heartbeat by itself keeps', async () => {
    const alone = await enrolled()
    const said = { sealKey: Buffer.alloc(32, 7).toString('base64'), agentVersion: '0.3.0', arch: 'aarch64' as const }
    const refusal = { refusedCode: 'edge_too_old', refusedVersion: 1, refusedAt: new Date() }
    for (const one of [alone, edge]) await api.db.edge.updateMany({ where: { id: one.edgeId }, data: refusal })
    expect((await alone.heartbeat({ ...said, clockUnixMs: 1_795_000_000_123 })).status).toBe(200)
    await edge.poll('0.0', 0, { ...said, clockUnixMs: 1_795_000_000_123 })
    const [byItself, carried] = [await rowOf(alone), await rowOf(edge)]
    expect(byItself).toMatchObject({ refusedCode: null, arch: 'aarch64', sealKey: said.sealKey })
    expect({ ...carried, ...own(byItself) }).toEqual(byItself)
  })

  test('costs one statement with Prisma nowhere near, and less than one where several come together', async () => {
    const edges = [edge, await enrolled(), await enrolled(), await enrolled()]
    const pairs = new Map<EdgeClient, string>()
    for (const one of edges) {
      const { incarnation, counter } = snapshotOf((await one.state('0.0', 0)).body)
      pairs.set(one, `${incarnation}.${counter}`)
      expect(await one.poll(`${incarnation}.${counter}`, 0)).toEqual(none)
    }
    statements.length = 0
    expect(await edge.poll(pairs.get(edge) ?? '', 0)).toEqual(none)
    expect(statements).toEqual([expect.stringContaining('take_polls')])
    statements.length = 0
    const polls = new Polls({ db: api.serverDb, clock: api.clock.read })
    const asked = await Promise.all(edges.map(remembered))
    const looks = await Promise.all(asked.map((one) => polls.take(one, heartbeatWith({ devicesBooting: 9 }))))
    expect(statements).toHaveLength(1)
    for (const look of looks) expect(look).toMatchObject({ isCurrent: true, isAcknowledged: true })
    for (const one of edges) expect((await rowOf(one)).heartbeat).toMatchObject({ devicesBooting: 9 })
  })

  test('tells the other edges of the site of a new address', async () => {
    const other = await enrolled()
    await edge.poll('0.0', 0, { address: '192.0.2.1', peerPort: 6911 })
    const { counter } = snapshotOf((await other.poll('0.0', 0)).body)
    const listening = api.nextListener()
    const waiting = other.poll(`1.${counter}`, 28_000)
    await listening
    expect(await edge.poll('9.0', 0, { address: '192.0.2.9', peerPort: 6911 })).toEqual(none)
    const state = snapshotOf((await waiting).body)
    expect(state.siteEdges?.edges.map(({ address }) => address)).toContain('192.0.2.9')
  })

  test('changes nothing when it is replayed', async () => {
    const path = '/edge/v1/state?after=9.0&waitMs=0'
    const body = JSON.stringify(heartbeatWith({ devicesBooting: 1 }))
    const early = { ...edge }
    expect(await edge.send({ method: 'POST', path, body })).toEqual(none)
    await edge.poll('9.0', 0, { devicesBooting: 2 })
    const latest = edge.counter
    edge.counter = early.counter
    expect(await edge.send({ method: 'POST', path, body })).toEqual(none)
    expect(await rowOf(edge)).toMatchObject({ heartbeat: { devicesBooting: 2 }, heartbeatCounter: BigInt(latest) })
  })

  test.each([
    ['after=1.0&waitMs=28001', {}],
    ['after=1.0', {}],
    ['after=x&waitMs=0', {}],
    ['after=1.0&waitMs=0', { uptimeMs: -1 }],
  ])('is refused where it is not one: %s %j', async (search, changes) => {
    const body = JSON.stringify(heartbeatWith(changes))
    const answer = await edge.send({ method: 'POST', path: `/edge/v1/state?${search}`, body })
    expect(answer).toEqual(refused(400, 'invalid_body'))
    expect((await rowOf(edge)).heartbeat).toBeNull()
    // States come all the same.
    expect((await edge.state('0.0', 0)).status).toBe(200)
  })
})

describe('what this process remembers of an edge', () => {
  beforeEach(async () => {
    expect((await edge.poll('0.0', 0)).status).toBe(200)
  })

  test('ends with its revocation, at once', async () => {
    await revoke(edge)
    expect(await edge.poll('1.1', 0, { devicesBooting: 9 })).toEqual(refused(403, 'edge_revoked'))
    expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 0 })
  })

  test('ends with its revocation, in a poll that waits', async () => {
    const listening = api.nextListener()
    const waiting = edge.poll('1.1', 28_000)
    await listening
    await revoke(edge)
    expect(await waiting).toEqual(refused(403, 'edge_revoked'))
  })

  test('ends where its row was changed beside the API', async () => {
    await api.db.edge.updateMany({ where: { id: edge.edgeId }, data: { revokedAt: new Date() } })
    expect(await edge.poll('1.1', 0)).toEqual(refused(403, 'edge_revoked'))
  })

  test('does not outlast its key', async () => {
    const [before, after] = [edge.seed, new EdgeClient(api.url).seed]
    const statement = edge.statement(before, after)
    edge.seed = after
    expect((await edge.rotateKey([statement])).status).toBe(200)
    edge.seed = before
    expect(await edge.poll('1.1', 0, { devicesBooting: 9 })).toEqual(refused(401, 'signature_invalid'))
    expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 0 })
    edge.seed = after
    expect((await edge.poll('1.1', 0, { devicesBooting: 4 })).status).toBe(204)
    expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 4 })
  })

  test('does not outlast its boot epoch, wherever the next one was seen', async () => {
    const beside = await startTestApi({ beside: api })
    try {
      const later = new EdgeClient(beside.url, edge.seed)
      later.edgeId = edge.edgeId
      later.bootEpoch = 2
      expect((await later.heartbeat({ devicesBooting: 2 })).status).toBe(200)
      expect(await edge.poll('1.1', 0)).toEqual(refused(409, 'stale_epoch'))
      edge.bootEpoch = 2
      edge.counter = 10
      expect(await edge.poll('1.1', 0, { devicesBooting: 3 })).toEqual(none)
      expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 3 })
    } finally {
      await beside.close()
    }
  })

  test('does not outlast its site', async () => {
    const { organizationId, farmId } = tenant
    const site = await api.db.site.create({ data: { organizationId, farmId, name: 'Other', timeZone: 'UTC' } })
    await api.db.edge.updateMany({ where: { id: edge.edgeId }, data: { siteId: site.id } })
    expect(snapshotOf((await edge.poll('1.1', 0)).body)).toMatchObject({ siteId: site.id })
  })

  test('lets nobody else speak for it', async () => {
    const foreign = await enrolled(await createTenant(api, `foreign-${round}`))
    foreign.edgeId = edge.edgeId
    expect(await foreign.poll('1.1', 0, { devicesBooting: 9 })).toEqual(refused(401, 'signature_invalid'))
    foreign.edgeId = '00000000-0000-4000-8000-000000000000'
    expect(await foreign.poll('1.1', 0)).toEqual(refused(401, 'edge_unknown'))
    expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 0 })
  })
})

describe('edges whose polls are taken together', () => {
  test('do not wait for one whose row somebody holds, which is taken by itself', async () => {
    const other = await enrolled()
    for (const one of [edge, other]) await one.poll('0.0', 0)
    const { db } = openDb(api.databaseUrl)
    try {
      const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const holding = db.$transaction(async (transaction) => {
        await transaction.$queryRaw`select id from edge where id = ${edge.edgeId}::uuid for update`
        held.resolve()
        await release.promise
      })
      await held.promise
      const waiting = edge.poll('9.0', 0, { devicesBooting: 5 })
      expect(await other.poll('9.0', 0, { devicesBooting: 6 })).toEqual(none)
      expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 0 })
      release.resolve()
      await holding
      expect(await waiting).toEqual(none)
      expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 5 })
    } finally {
      await db.$disconnect()
    }
  })

  test('are not refused with one that PostgreSQL refuses', async () => {
    const other = await enrolled()
    for (const one of [edge, other]) await one.poll('9.0', 0)
    const polls = new Polls({ db: api.serverDb, clock: api.clock.read })
    const [bad, good] = [await remembered(edge), await remembered(other)]
    const [badLook, goodLook] = await Promise.all([
      polls.take(bad, { ...heartbeatWith(), agentVersion: '\u0000' }),
      polls.take(good, heartbeatWith()),
    ])
    // Both are taken by themselves.
    expect([badLook, goodLook]).toEqual([null, null])
    expect(await other.poll('9.0', 0, { devicesBooting: 2 })).toEqual(none)
    expect(await polls.take(await remembered(other), heartbeatWith())).not.toBeNull()
  })

  test('are as many as come, each with its own answer, also where one of them comes twice', async () => {
    const others = await Promise.all([1, 2, 3].map(() => enrolled()))
    for (const one of [edge, ...others]) await one.poll('9.0', 0)
    const polls = new Polls({ db: api.serverDb, clock: api.clock.read })
    const asked = await Promise.all([edge, ...others].map(remembered))
    const [first] = asked
    if (!first) throw new Error('no edge')
    const again = { ...first, counter: first.counter + 1 }
    const looks = await Promise.all(
      [...asked, again].map((one, index) => polls.take(one, heartbeatWith({ devicesBooting: index }))),
    )
    expect(looks.map((look) => look === null)).toEqual([true, false, false, false, false])
    expect((await rowOf(edge)).heartbeat).toMatchObject({ devicesBooting: 4 })
  })
})
