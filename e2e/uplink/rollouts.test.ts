import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { installedVersion, ReleaseRepository } from '../lib/control-plane/releases.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

interface Rollout {
  id: string
  state: string
  wave: number
  revision: number
  pause: { reason: string; edge: { id: string } | null } | null
  counts: Record<string, number>
}

const scratch = scratchDirectory()
let plane: ControlPlane | undefined
/** The first one is the canary; each has a site of its own. */
let edges: [ControlledEdge, ControlledEdge]
let siteIds: [string, string]

beforeAll(async () => {
  const repository = new ReleaseRepository(scratch.path)
  const endsAtOnce = repository.programWith({ [installedVersion]: '0.3.0', serve: 'sErVe' })
  repository.add(endsAtOnce, repository.programWith({ [installedVersion]: '0.2.0' }))
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'), undefined, repository.settings)
  await plane.addApi()
  const canary = await ControlledEdge.start(plane, path.join(scratch.path, 'canary'))
  const { tenant, person, api } = canary
  const site = await api.mutate<{ id: string }>('site.create', {
    farmId: tenant.farmId,
    name: 'Second',
    timeZone: 'UTC',
  })
  siteIds = [tenant.siteId, site.id]
  const beside = { tenant: { ...tenant, siteId: site.id }, person }
  edges = [canary, await ControlledEdge.start(plane, path.join(scratch.path, 'second'), [], beside)]
})
afterAll(async () => {
  for (const edge of edges ?? []) await edge.stop()
  await plane?.stop()
  scratch.remove()
})

const api = () => edges[0].api
const start = (version: string) =>
  api().mutate<Rollout>('rollout.create', {
    farmId: edges[0].tenant.farmId,
    version,
    waves: [[siteIds[0]], [siteIds[1]]],
    healthyMinutes: 0,
  })
const get = (rolloutId: string) => api().query<Rollout>('rollout.get', { rolloutId })
const versions = async () =>
  Promise.all(edges.map(async (edge) => (await edge.query<{ agentVersion: string }>()).agentVersion))

async function until(rolloutId: string, is: (rollout: Rollout) => boolean): Promise<Rollout> {
  for (;;) {
    const rollout = await get(rolloutId)
    if (is(rollout)) return rollout
    for (const { process } of edges) if (!process.isRunning) throw new Error(process.output)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('a rollout updates the canary, then the next site, while the API is killed in the middle of it', async () => {
  const { id } = await start('0.2.0')
  await until(id, ({ counts }) => counts.running === 1)
  expect(await versions()).toEqual(['0.2.0', installedVersion])
  await plane?.killApi()
  expect(await until(id, ({ state }) => state !== 'running')).toMatchObject({ state: 'done', counts: { running: 2 } })
  expect(await versions()).toEqual(['0.2.0', '0.2.0'])
})

test('a release that the canary leaves pauses the rollout, and reaches no other site', async () => {
  const { id } = await start('0.3.0')
  await edges[0].process.ended
  // As a service manager does.
  await edges[0].restart()
  const paused = await until(id, ({ state }) => state !== 'running')
  expect(paused).toMatchObject({
    state: 'paused',
    wave: 0,
    pause: { reason: 'failed', edge: { id: edges[0].edgeId } },
    counts: { failed: 1, waiting: 1 },
  })
  expect(await edges[1].query()).toMatchObject({ agentVersion: '0.2.0', release: { version: '0.2.0' } })
  const { revision } = paused
  await api().mutate('rollout.cancel', { rolloutId: id, revision })
  expect(await get(id)).toMatchObject({ state: 'cancelled', counts: { left: 2 } })
  expect(await edges[0].query()).toMatchObject({ agentVersion: '0.2.0', release: { version: '0.2.0' } })
})
