import { randomUUID } from 'node:crypto'
import type { RolloutSpares, Sample } from '../sample.ts'
import type { TestApi } from '../test-api.ts'
import type { TestTenant } from '../test-tenant.ts'
import { testRelease } from './test-releases.ts'

const spareCount = 40
const changing = (kind: 'runningIds' | 'pausedIds', more: object = {}): Sample => ({
  idName: 'rolloutId',
  input: { revision: 1, ...more },
  ownId: (tenant) => tenant.rolloutSpares[kind].pop() ?? '',
})

export const rolloutSamples: Record<string, Sample> = {
  'rollout.list': {},
  'rollout.get': { idName: 'rolloutId', ownId: (tenant) => tenant.rolloutSpares.runningIds[0] ?? '' },
  'rollout.edges': { idName: 'rolloutId', ownId: (tenant) => tenant.rolloutSpares.runningIds[0] ?? '' },
  'rollout.create': {
    idName: 'farmId',
    input: (tenant) => ({
      version: testRelease,
      waves: [[tenant.rolloutSpares.siteIds.pop() ?? '']],
      healthyMinutes: 5,
    }),
    ownId: (tenant) => tenant.farmId,
  },
  'rollout.pause': changing('runningIds'),
  'rollout.resume': changing('pausedIds', { troubled: 'retry' }),
  'rollout.startNextWave': changing('runningIds'),
  'rollout.cancel': changing('runningIds'),
}

/** Creates sites with an edge each, and rollouts without edges whose first wave has started. */
export async function createRolloutSpares(
  { db, clock }: TestApi,
  { organizationId, farmId }: TestTenant,
): Promise<RolloutSpares> {
  const ids = () => Array.from({ length: spareCount }, () => randomUUID())
  const spares = { siteIds: ids(), runningIds: ids(), pausedIds: ids() }
  const { now } = clock
  await db.site.createMany({
    data: spares.siteIds.map((id) => ({ organizationId, farmId, id, name: id, timeZone: 'UTC' })),
  })
  await db.edge.createMany({
    data: spares.siteIds.map((siteId) => ({
      organizationId,
      id: siteId,
      siteId,
      name: siteId,
      publicKey: siteId,
      arch: 'x86_64',
      agentVersion: '0.1.0',
      enrolledAt: now,
    })),
  })
  const rollout = {
    organizationId,
    farmId,
    version: testRelease,
    waveCount: 2,
    waveStartedAt: now,
    byHand: true,
    healthyMinutes: 0,
    watchedSince: now,
    watchedAt: now,
    createdByName: 'Somebody',
    createdAt: now,
  }
  const paused = { state: 'paused' as const, pauseReason: 'by_hand' as const, pausedAt: now }
  await db.rollout.createMany({
    data: [
      ...spares.runningIds.map((id) => ({ ...rollout, id })),
      ...spares.pausedIds.map((id) => ({ ...rollout, ...paused, id })),
    ],
  })
  return spares
}
