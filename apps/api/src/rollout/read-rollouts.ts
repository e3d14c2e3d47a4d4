import type { z } from 'zod'
import { liveRollout, ofLiveSite, visibleRollouts } from '../access/visible.ts'
import { cutPage, decodeCursor } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import { heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { waveHealthyAt } from './observe-edge.ts'
import { countsOf, type RolloutRow, rolloutSummaryOf, rolloutSummarySelect } from './rows.ts'
import {
  type RolloutDetail,
  type RolloutSummary,
  type rolloutEdgePage,
  type rolloutEdgesInput,
  type rolloutListInput,
  type rolloutPage,
  rolloutSort,
} from './schema.ts'

interface Own {
  db: DbOrTransaction
  organizationId: string
}

export async function listRollouts(
  { db, actor }: ServiceContext,
  { farmId, state, ...asked }: z.output<typeof rolloutListInput>,
): Promise<z.infer<typeof rolloutPage>> {
  const { organizationId } = actor
  const order = listOrder(rolloutSort, asked)
  const rows = await db.rollout.findMany({
    where: {
      organizationId,
      ...(farmId ? { farmId } : {}),
      ...(state ? { state } : {}),
      AND: [visibleRollouts(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: rolloutSummarySelect,
  })
  const summaries = await summariesOf({ db, organizationId }, rows)
  const items = new Map(summaries.map((summary) => [summary.id, summary]))
  return order.page(rows, ({ id }) => items.get(id) as RolloutSummary)
}

async function summariesOf({ db, organizationId }: Own, rows: RolloutRow[]): Promise<RolloutSummary[]> {
  const rolloutId = { in: rows.map(({ id }) => id) }
  const counted = await db.rolloutEdge.groupBy({
    by: ['rolloutId', 'state'],
    where: { organizationId, rolloutId },
    _count: true,
  })
  const edges = await db.edge.findMany({
    where: { organizationId, id: { in: rows.flatMap(({ pausedEdgeId }) => pausedEdgeId ?? []) }, ...ofLiveSite },
    select: { id: true, name: true },
  })
  const nameOf = new Map(edges.map(({ id, name }) => [id, name]))
  return rows.map((row) =>
    rolloutSummaryOf(row, {
      counts: countsOf(
        counted.filter((of) => of.rolloutId === row.id).map(({ state, _count: count }) => ({ state, count })),
      ),
      edgeName: nameOf.get(row.pausedEdgeId ?? '') ?? null,
    }),
  )
}

/** Throws `not_found`. */
export async function getRollout({ db, actor }: ServiceContext, rolloutId: string): Promise<RolloutDetail> {
  return readRollout({ db, organizationId: actor.organizationId }, rolloutId)
}

/** Throws `not_found`. */
export async function readRollout({ db, organizationId }: Own, rolloutId: string): Promise<RolloutDetail> {
  const row = await db.rollout.findUnique({
    where: { ...ownRow({ organizationId }, rolloutId), ...liveRollout },
    select: { ...rolloutSummarySelect, waveStartedAt: true },
  })
  if (!row) throw new AppError('not_found')
  const [summary] = await summariesOf({ db, organizationId }, [row])
  if (!summary) throw new AppError('not_found')
  const counted = await db.rolloutEdge.groupBy({
    by: ['wave', 'state'],
    where: { organizationId, rolloutId },
    _count: true,
  })
  const sites = await db.rolloutSite.findMany({
    where: { organizationId, rolloutId, ...ofLiveSite },
    orderBy: [{ site: { name: 'asc' } }, { siteId: 'asc' }],
    select: { wave: true, site: { select: { id: true, name: true } } },
  })
  const ofWave = await db.rolloutEdge.findMany({
    where: { organizationId, rolloutId, wave: row.wave },
    select: { state: true, cause: true, healthySince: true },
  })
  const healthyAt = row.waveStartedAt && waveHealthyAt(ofWave, row.waveStartedAt, row.healthyMinutes)
  return {
    ...summary,
    waveStartedAt: row.waveStartedAt?.toISOString() ?? null,
    healthyAt: healthyAt?.toISOString() ?? null,
    mayStartNext: row.state === 'running' && healthyAt !== null && row.wave + 1 < row.waveCount,
    waves: Array.from({ length: row.waveCount }, (_, wave) => ({
      sites: sites.filter((of) => of.wave === wave).map(({ site }) => site),
      counts: countsOf(counted.filter((of) => of.wave === wave).map(({ state, _count: count }) => ({ state, count }))),
    })),
  }
}

/** In the order in which they get their orders. Edges of sites in the trash are left out. */
export async function listRolloutEdges(
  { db, actor: { organizationId } }: ServiceContext,
  { rolloutId, state, cursor, limit }: z.output<typeof rolloutEdgesInput>,
): Promise<z.infer<typeof rolloutEdgePage>> {
  const after = decodeCursor(cursor)
  const rollout = await db.rollout.findUnique({
    where: ownRow({ organizationId }, rolloutId),
    select: { version: true },
  })
  if (!rollout) throw new AppError('not_found')
  const rows = await db.rolloutEdge.findMany({
    where: {
      organizationId,
      rolloutId,
      edge: ofLiveSite,
      ...(state ? { state } : {}),
      ...(after ? { position: { gt: positionOf(after[0]) } } : {}),
    },
    orderBy: { position: 'asc' },
    take: limit + 1,
    include: {
      edge: { select: { name: true, agentVersion: true, heartbeat: true, site: { select: { id: true, name: true } } } },
    },
  })
  return cutPage(rows, limit, {
    item: ({ edge, ...row }) => {
      const update = heartbeatOf(edge)?.update
      const isOfOrder = update?.version === rollout.version && update.attempt === row.attempt
      return {
        edgeId: row.edgeId,
        name: edge.name,
        siteId: edge.site.id,
        siteName: edge.site.name,
        wave: row.wave,
        state: row.state,
        cause: row.cause,
        progress: isOfOrder ? update.state : null,
        formerVersion: row.formerVersion,
        agentVersion: edge.agentVersion,
        orderedAt: row.orderedAt?.toISOString() ?? null,
        healthySince: row.healthySince?.toISOString() ?? null,
      }
    },
    key: (row) => [String(row.position), row.edgeId],
  })
}

function positionOf(text: string): number {
  const position = Number(text)
  if (Number.isSafeInteger(position)) return position
  throw new AppError('invalid', { public: 'The cursor does not belong to this list.' })
}
