import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { ofLiveSite } from '../access/visible.ts'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { requireRelease } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { UpdateRepository } from '../installation/public.ts'
import { takeInEdges } from './advance-rollouts.ts'
import { readRollout } from './read-rollouts.ts'
import type { createRolloutInput, RolloutDetail } from './schema.ts'

/**
 * Starts a rollout; the job orders the first edge within seconds. Throws `not_found`; `invalid` for a site that the
 * farm does not have; `conflict` for a release that does not exist for an edge's processor, a canary site without
 * edges, and a site that another rollout has not finished with.
 */
export async function createRollout(
  context: ServiceContext,
  repository: UpdateRepository,
  { farmId, version, waves, byHand, healthyMinutes }: z.output<typeof createRolloutInput>,
): Promise<RolloutDetail> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const now = clock()
  return db.$transaction(async (transaction) => {
    // Locked, so that two at once do not take one site.
    if (!(await lockRow(transaction, 'farm', { organizationId, id: farmId, strength: 'update' })))
      throw new AppError('not_found')
    await requireSites({ ...context, db: transaction }, repository, { farmId, version, siteIds: waves.flat() })
    const rollout = await transaction.rollout.create({
      data: {
        organizationId,
        farmId,
        version,
        waveCount: waves.length,
        byHand,
        healthyMinutes,
        watchedSince: now,
        watchedAt: now,
        createdByName: actor.userName,
        createdAt: now,
        sites: { create: waves.flatMap((ids, wave) => ids.map((siteId) => ({ siteId, wave }))) },
      },
      select: { id: true, farmId: true },
    })
    for (const wave of waves.keys()) await takeInEdges(transaction, { organizationId, ...rollout, wave })
    const after = await readRollout({ db: transaction, organizationId }, rollout.id)
    await recordChange(
      { ...context, db: transaction },
      {
        kind: 'rollout',
        id: rollout.id,
        name: version,
        place: { farmId, siteId: null, collectionId: null },
        before: null,
        after: {
          version,
          byHand,
          healthyMinutes,
          waves: after.waves.map(({ sites: of }) => of.map(({ name }) => name)),
        },
      },
    )
    return after
  })
}

interface Wanted {
  farmId: string
  version: string
  /** The canary first. */
  siteIds: string[]
}

async function requireSites(
  context: Pick<ServiceContext, 'actor'> & { db: DbTransaction },
  repository: UpdateRepository,
  { farmId, version, siteIds }: Wanted,
): Promise<void> {
  const { db, actor } = context
  const { organizationId } = actor
  const sites = await db.site.findMany({ where: { organizationId, farmId, id: { in: siteIds } }, select: { id: true } })
  if (sites.length !== siteIds.length) throw new AppError('invalid', { public: 'The farm has no such site.' })
  await requireFree(context, siteIds)
  const edges = await db.edge.findMany({
    where: { organizationId, siteId: { in: siteIds }, revokedAt: null, ...ofLiveSite },
    select: { siteId: true, arch: true },
  })
  if (!edges.some(({ siteId }) => siteId === siteIds[0]))
    throw new AppError('conflict', { public: 'The canary site has no edge. Choose a site that has one.' })
  await requireRelease(repository, version, [...new Set(edges.map(({ arch }) => arch))])
}

async function requireFree(
  { db, actor: { organizationId } }: Pick<ServiceContext, 'actor'> & { db: DbTransaction },
  siteIds: string[],
): Promise<void> {
  const taken = await db.rolloutSite.findFirst({
    where: {
      organizationId,
      siteId: { in: siteIds },
      ...ofLiveSite,
      rollout: { state: { in: ['running', 'paused'] } },
    },
    select: { site: { select: { name: true } }, rolloutId: true },
  })
  if (!taken) return
  const rollout = await db.rollout.findUniqueOrThrow({
    where: ownRow({ organizationId }, taken.rolloutId),
    select: { version: true },
  })
  throw new AppError('conflict', {
    public: `The site ${taken.site.name} is in the rollout of ${rollout.version}. Cancel that one, or wait until it is done.`,
  })
}
