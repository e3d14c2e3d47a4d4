import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { EdgeClient } from '../../test/edge-client.ts'
import { testRelease as version } from '../../test/matrix/test-releases.ts'
import { useTestSite } from '../../test/test-site.ts'
import { makeJoinToken } from '../../test/test-tenant.ts'
import { advanceAllRollouts } from './advance-rollouts.ts'
import { silentAfterMs } from './observe-edge.ts'
import type { RolloutDetail, RolloutEdgeView } from './schema.ts'

const site = useTestSite('admin')
const minuteMs = 60_000
/** Sites beside the first one, with an edge each. */
let others: { siteId: string; edge: EdgeClient }[]

beforeEach(async () => {
  others = [await addSite('Aachen'), await addSite('Bonn')]
})

async function addSite(name: string): Promise<{ siteId: string; edge: EdgeClient }> {
  const { organizationId, farmId } = site().tenant
  const row = await site().api.db.site.create({ data: { organizationId, farmId, name, timeZone: 'UTC' } })
  const token = await makeJoinToken(site().api, { ...site().tenant, siteId: row.id })
  return { siteId: row.id, edge: await EdgeClient.enrolled(site().api.url, token) }
}

/** As the job does, with the rights that the API has; twice at once, as two processes do. */
async function advance(ms = 5_000): Promise<void> {
  site().api.clock.advance(ms)
  const context = { db: site().api.serverDb, clock: site().api.clock.read }
  await Promise.all([advanceAllRollouts(context), advanceAllRollouts(context)])
}

const input = (changes: object = {}) => ({
  farmId: site().tenant.farmId,
  version,
  waves: [[site().tenant.siteId], others.map(({ siteId }) => siteId)],
  healthyMinutes: 10,
  ...changes,
})
const create = (changes: object = {}) => site().mutate<RolloutDetail>('rollout.create', input(changes))
const refused = (changes: object) => site().tryMutation('rollout.create', input(changes))
const get = (rolloutId: string) => site().query<RolloutDetail>('rollout.get', { rolloutId })
const edgesOf = async (rolloutId: string) =>
  (await site().query<{ items: RolloutEdgeView[] }>('rollout.edges', { rolloutId })).items
const stateOf = async (rolloutId: string, edge: EdgeClient) =>
  (await edgesOf(rolloutId)).find(({ edgeId }) => edgeId === edge.edgeId)
const change = async (step: string, rolloutId: string, more: object = {}) => {
  const { revision } = await get(rolloutId)
  return site().mutate<RolloutDetail>(`rollout.${step}`, { rolloutId, revision, ...more })
}
const orderFor = async (edge: EdgeClient) => (await site().state(edge)).release ?? null

/** The edge says this of the order that its state has. */
async function says(edge: EdgeClient, state: string, cause?: string): Promise<void> {
  const order = await orderFor(edge)
  const runs = state === 'healthy' ? { agentVersion: version } : {}
  const update = order ? { update: { ...order, state, ...(cause ? { cause } : {}) } } : {}
  await edge.heartbeat({ ...runs, ...update })
}

async function everybodyIsHealthy(...edges: EdgeClient[]): Promise<void> {
  for (const edge of edges) await says(edge, 'healthy')
}

const actions = async (objectId: string) => {
  const rows = await site().api.db.auditEntry.findMany({
    where: { objectId, action: { startsWith: 'rollout.' } },
    orderBy: [{ at: 'asc' }, { id: 'asc' }],
    select: { action: true },
  })
  return rows.map(({ action }) => action)
}

describe('a rollout', () => {
  test('orders the release for the canary, and for the other sites when it has been healthy for long enough', async () => {
    const { id } = await create({ healthyMinutes: 2 })
    expect(await orderFor(site().edge)).toBeNull()
    await advance()
    expect(await orderFor(site().edge)).toEqual({ version, attempt: 1 })
    expect(await orderFor(others[0]?.edge ?? site().edge)).toBeNull()
    await says(site().edge, 'fetching')
    await advance()
    expect(await stateOf(id, site().edge)).toMatchObject({
      state: 'ordered',
      progress: 'fetching',
      formerVersion: '0.1.0',
    })
    await says(site().edge, 'healthy')
    await advance()
    const healthyAt = (await get(id)).healthyAt
    expect(healthyAt).toBe(new Date(site().api.clock.now.getTime() + 2 * minuteMs).toISOString())
    while (site().api.clock.now.toISOString() < (healthyAt ?? '')) {
      expect(await get(id)).toMatchObject({ wave: 0, healthyAt })
      await says(site().edge, 'healthy')
      await advance(minuteMs / 4)
    }
    expect(await get(id)).toMatchObject({ wave: 1, state: 'running' })
    await advance()
    for (const { edge } of others) expect(await orderFor(edge)).toEqual({ version, attempt: 1 })
  })

  test('ends when its last wave is healthy, and leaves its orders in force', async () => {
    const { id } = await create({ healthyMinutes: 0 })
    await advance()
    await everybodyIsHealthy(site().edge)
    await advance(10)
    await advance(10)
    await everybodyIsHealthy(site().edge, ...others.map(({ edge }) => edge))
    await advance(10)
    expect(await get(id)).toMatchObject({ state: 'done', endedAt: expect.any(String), counts: { running: 3 } })
    expect(await orderFor(site().edge)).toEqual({ version, attempt: 1 })
    expect(await actions(id)).toEqual([
      'rollout.create',
      'rollout.startWave',
      'rollout.endWave',
      'rollout.startWave',
      'rollout.finish',
    ])
    expect(await actions(site().edge.edgeId)).toEqual(['rollout.orderEdge'])
  })

  test('waits for a person before each further wave, who can also shorten the time', async () => {
    const { id } = await create({ byHand: true, healthyMinutes: 60 })
    await advance()
    const early = await site().tryMutation('rollout.startNextWave', { rolloutId: id, revision: 2 })
    expect([early.status, early.code]).toEqual([409, 'conflict'])
    await everybodyIsHealthy(site().edge)
    await advance(10)
    expect(await get(id)).toMatchObject({ wave: 0, mayStartNext: true })
    expect(await change('startNextWave', id)).toMatchObject({ wave: 1, waveStartedAt: null, mayStartNext: false })
    await advance(10)
    for (const { edge } of others) expect(await orderFor(edge)).toEqual({ version, attempt: 1 })
  })

  test('updates one edge of a site after the other, also one that was enrolled since it was planned', async () => {
    const second = await site().enrolEdge()
    const { id } = await create({ waves: [[site().tenant.siteId]] })
    const third = await site().enrolEdge()
    const sites = [site().edge, second, third]
    await advance()
    expect(await edgesOf(id)).toHaveLength(3)
    for (let updated = 1; updated <= 3; updated++) {
      const states = await Promise.all(sites.map((edge) => orderFor(edge)))
      expect(states.filter((order) => order !== null)).toHaveLength(updated)
      await everybodyIsHealthy(...sites.filter((_, index) => states[index] !== null))
      await advance()
    }
  })

  test('is listed with its counts, newest first, for a farm and by state', async () => {
    const { id } = await create({ waves: [[site().tenant.siteId]] })
    site().api.clock.advance(1000)
    const next = await create({ waves: [[others[0]?.siteId ?? '']] })
    await change('cancel', next.id)
    const list = (filter: object) => site().query<{ items: RolloutDetail[] }>('rollout.list', filter)
    expect((await list({})).items.map((item) => item.id)).toEqual([next.id, id])
    expect((await list({ state: 'running' })).items).toMatchObject([{ id, counts: { waiting: 1, running: 0 } }])
    expect((await list({ farmId: randomUUID() })).items).toEqual([])
    expect(await get(id)).toMatchObject({
      version,
      wave: 0,
      waveCount: 1,
      waves: [{ sites: [{ id: site().tenant.siteId }], counts: { waiting: 1 } }],
    })
  })
})

describe('a rollout pauses by itself', () => {
  test('when an edge returns to the release before, and orders nothing further until it is resumed', async () => {
    const { organizationId, farmId } = site().tenant
    await site().mutate('webhook.create', {
      name: 'Chat',
      url: 'https://hooks.example/in',
      events: ['rollout.paused'],
    })
    const second = await site().enrolEdge()
    const { id } = await create({ healthyMinutes: 0 })
    await advance()
    await says(site().edge, 'failed', 'ended')
    await advance()
    const told = await site().api.db.webhookEvent.findMany({ where: { organizationId, type: 'rollout.paused' } })
    expect(told.map(({ payload }) => payload)).toMatchObject([
      {
        data: { rolloutId: id, farmId, version, wave: 1, reason: 'failed', cause: 'ended', edgeId: site().edge.edgeId },
      },
    ])
    expect(await get(id)).toMatchObject({
      state: 'paused',
      pause: { reason: 'failed', edge: { id: site().edge.edgeId } },
      counts: { failed: 1, waiting: 3 },
    })
    expect(await stateOf(id, site().edge)).toMatchObject({ state: 'failed', cause: 'ended' })
    expect(await actions(id)).toContain('rollout.pauseByItself')
    await advance(minuteMs / 2)
    expect(await orderFor(second)).toBeNull()
    expect(await change('resume', id, { troubled: 'retry' })).toMatchObject({ state: 'running', pause: null })
    expect(await orderFor(site().edge)).toEqual({ version, attempt: 2 })
    await everybodyIsHealthy(site().edge)
    await advance()
    expect(await orderFor(second)).toEqual({ version, attempt: 1 })
  })

  test('when an edge does not come back, also of a wave that is over', async () => {
    const { id } = await create({ healthyMinutes: 0 })
    await advance()
    await everybodyIsHealthy(site().edge)
    await advance(10)
    await advance(10)
    for (let passed = minuteMs / 2; passed < silentAfterMs; passed += minuteMs / 2) {
      for (const { edge } of others) await says(edge, 'fetching')
      await advance(minuteMs / 2)
      expect((await get(id)).state).toBe('running')
    }
    await advance(minuteMs)
    expect(await get(id)).toMatchObject({
      state: 'paused',
      wave: 1,
      pause: { reason: 'silent', edge: { id: site().edge.edgeId } },
    })
    await change('resume', id, { troubled: 'leave' })
    expect(await stateOf(id, site().edge)).toMatchObject({ state: 'left', cause: 'silent' })
    await everybodyIsHealthy(...others.map(({ edge }) => edge))
    await advance()
    expect(await get(id)).toMatchObject({ state: 'done', counts: { running: 2, left: 1 } })
  })

  test('but not for heartbeats that nobody could receive, because the control plane was down', async () => {
    const { id } = await create()
    await advance()
    await says(site().edge, 'fetching')
    await advance(3_600_000)
    expect(await get(id)).toMatchObject({ state: 'running', counts: { ordered: 1 } })
    await advance(minuteMs / 2)
    expect(await get(id)).toMatchObject({ state: 'running' })
  })

  test('and leaves an edge for which somebody ordered another release, or that was revoked', async () => {
    const { id } = await create()
    await advance()
    await site().mutate('edge.orderRelease', { edgeId: site().edge.edgeId, version: '0.1.0' })
    await site().revokeEdge(others[0]?.edge.edgeId ?? '')
    await advance()
    expect(await stateOf(id, site().edge)).toMatchObject({ state: 'left', cause: 'other_order' })
    expect(await stateOf(id, others[0]?.edge ?? site().edge)).toMatchObject({ state: 'left', cause: 'revoked' })
    expect((await get(id)).state).toBe('running')
  })
})

describe('a person', () => {
  test('pauses and resumes it; edges that have their order continue', async () => {
    const { id } = await create({ healthyMinutes: 0 })
    await advance()
    expect(await change('pause', id)).toMatchObject({ state: 'paused', pause: { reason: 'by_hand', edge: null } })
    await everybodyIsHealthy(site().edge)
    await advance()
    expect(await get(id)).toMatchObject({ state: 'paused', wave: 0, counts: { running: 1 } })
    await change('resume', id, { troubled: 'leave' })
    await everybodyIsHealthy(site().edge)
    await advance()
    expect(await get(id)).toMatchObject({ state: 'running', wave: 1 })
  })

  test('cancels it: who runs the release keeps it, who does not yet keeps what was ordered before', async () => {
    const [first, second] = [others[0]?.edge ?? site().edge, others[1]?.edge ?? site().edge]
    await site().mutate('edge.orderRelease', { edgeId: second.edgeId, version: '0.1.0' })
    const { id } = await create({ healthyMinutes: 0 })
    await advance()
    await everybodyIsHealthy(site().edge)
    await advance()
    await advance(10)
    await everybodyIsHealthy(site().edge, first)
    await advance(10)
    expect(await orderFor(second)).toEqual({ version, attempt: 2 })
    expect(await change('cancel', id)).toMatchObject({ state: 'cancelled', counts: { running: 2, left: 1 } })
    expect(await orderFor(site().edge)).toEqual({ version, attempt: 1 })
    expect(await orderFor(first)).toEqual({ version, attempt: 1 })
    expect(await orderFor(second)).toEqual({ version: '0.1.0', attempt: 3 })
    await advance()
    const { revision } = await get(id)
    for (const step of ['pause', 'cancel', 'startNextWave'])
      expect((await site().tryMutation(`rollout.${step}`, { rolloutId: id, revision })).status).toBe(409)
    expect(await create()).toMatchObject({ state: 'running' })
  })

  test('who has not seen the last change does not change it', async () => {
    const { id } = await create()
    await advance()
    const stale = await site().tryMutation('rollout.pause', { rolloutId: id, revision: 1 })
    expect([stale.status, stale.code]).toEqual([409, 'conflict'])
    expect(stale.text).toContain('changed in the meantime')
  })

  test.each([
    [{ waves: [] }, 400, /canary/],
    [{ healthyMinutes: 20_000 }, 400, /a week/],
    [{ version: '9.9.9' }, 409, /has no release 9\.9\.9 for x86_64/],
    [{ version: 'newest' }, 400, /version/],
  ])('is refused %j with a sentence', async (changes, status, sentence) => {
    const answer = await refused(changes)
    expect(answer.status).toBe(status)
    expect(answer.text).toMatch(sentence)
  })

  test('is refused more than one canary, a site twice, a foreign one, one without edges, and one in another rollout', async () => {
    const { siteId, organizationId, farmId } = site().tenant
    const [first, second] = others.map((other) => other.siteId)
    const foreign = (await site().other('admin')).tenant.siteId
    const empty = await site().api.db.site.create({ data: { organizationId, farmId, name: 'Empty', timeZone: 'UTC' } })
    expect((await refused({ waves: [[siteId, first]] })).text).toMatch(/exactly one site/)
    expect((await refused({ waves: [[siteId], [first, siteId]] })).text).toMatch(/one wave only/)
    const answers = [await refused({ waves: [[foreign]] }), await refused({ waves: [[randomUUID()]] })]
    expect(answers.map(({ status }) => status)).toEqual([400, 400])
    expect(answers[0]?.text).toBe(answers[1]?.text)
    expect((await refused({ waves: [[empty.id]] })).text).toMatch(/canary site has no edge/)
    await create({ waves: [[siteId], [first]] })
    expect((await refused({ waves: [[second], [first]] })).text).toMatch(/Aachen is in the rollout of 0\.2\.0/)
    expect((await refused({ waves: [[second]] })).status).toBe(200)
  })
})
