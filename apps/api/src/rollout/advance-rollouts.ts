import type { DbTransaction } from '@bootfarm/db'
import { liveRollout } from '../access/visible.ts'
import { inEachOrganization } from '../context/for-each-organization.ts'
import { type DbOrTransaction, ownRow, type PlatformContext } from '../context/service-context.ts'
import { setWantedRelease } from '../edge/public.ts'
import { emit } from '../events/event-bus.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'
import { isTrouble, observeEdge, waveHealthyAt } from './observe-edge.ts'
import { edgeFactsOf, edgeFactsSelect } from './rows.ts'

/** The job runs every few seconds: after a longer break the control plane was down, and heard no heartbeats. */
const breakMs = 60_000
/** Per organization; the next run continues. */
const atOnceMax = 50

/**
 * Moves every rollout on: sees what has become of its edges, pauses it where one is in trouble, orders the next edge
 * of each site, and starts the next wave. All that it knows lies in the database, so that it continues after a restart;
 * a row lock keeps several processes apart.
 */
export async function advanceAllRollouts({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_open_rollouts() as id`
  await inEachOrganization(
    { db },
    async (transaction, organizationId) => {
      const open = await transaction.$queryRaw<{ id: string }[]>`
        select id::text from rollout where organization_id = ${organizationId}::uuid and state in ('running', 'paused')
        order by watched_at, id limit ${atOnceMax} for update skip locked`
      for (const { id } of open) await advance(transaction, { organizationId, id, now: clock() })
    },
    rows.map(({ id }) => id),
  )
}

const openSelect = {
  id: true,
  farmId: true,
  version: true,
  state: true,
  wave: true,
  waveCount: true,
  waveStartedAt: true,
  byHand: true,
  healthyMinutes: true,
  watchedSince: true,
  watchedAt: true,
} as const

interface Step {
  organizationId: string
  id: string
  now: Date
}

type Open = NonNullable<Awaited<ReturnType<typeof readOpen>>> & Pick<Step, 'organizationId' | 'now'>

function readOpen(db: DbOrTransaction, { organizationId, id }: Step) {
  return db.rollout.findUnique({ where: { ...ownRow({ organizationId }, id), ...liveRollout }, select: openSelect })
}

async function advance(db: DbOrTransaction, step: Step): Promise<void> {
  const row = await readOpen(db, step)
  if (!row) return
  const { organizationId, id, now } = step
  const heardAll = now.getTime() - row.watchedAt.getTime() <= breakMs
  const rollout: Open = { ...row, organizationId, now, watchedSince: heardAll ? row.watchedSince : now }
  await db.rollout.update({
    where: ownRow({ organizationId }, id),
    data: { watchedAt: now, watchedSince: rollout.watchedSince },
    select: { id: true },
  })
  const edges = await observe(db, rollout)
  if (rollout.state === 'paused') return
  const troubled = edges.find(({ state }) => isTrouble(state))
  if (troubled && isTrouble(troubled.state)) {
    const { state: reason, edgeId, name: edgeName, cause } = troubled
    const { revision } = await move(db, rollout, {
      action: 'rollout.pauseByItself',
      data: { state: 'paused', pauseReason: reason, pausedEdgeId: edgeId, pausedAt: now },
      facts: { reason, edge: edgeName, cause },
    })
    const { farmId, version, wave } = rollout
    const paused = { id, farmId, version, wave: wave + 1, reason, cause, edgeId, edgeName, revision }
    await emit('rolloutPaused', { db, now, organizationId, rollout: paused })
    return
  }
  if (!rollout.waveStartedAt) {
    await takeInEdges(db, rollout)
    await move(db, rollout, {
      action: 'rollout.startWave',
      data: { waveStartedAt: now },
      facts: { wave: rollout.wave + 1 },
    })
    await orderNext(db, rollout)
    return
  }
  await orderNext(db, rollout)
  const ofWave = edges.filter(({ wave }) => wave === rollout.wave)
  const healthyAt = waveHealthyAt(ofWave, rollout.waveStartedAt, rollout.healthyMinutes)
  if (!healthyAt || healthyAt > now) return
  if (rollout.wave + 1 === rollout.waveCount)
    await move(db, rollout, { action: 'rollout.finish', data: { state: 'done', endedAt: now }, facts: {} })
  else if (!rollout.byHand)
    await move(db, rollout, {
      action: 'rollout.endWave',
      data: { wave: rollout.wave + 1, waveStartedAt: null },
      facts: { wave: rollout.wave + 2 },
    })
}

/** Returns the edges of the rollout as they are now, and keeps what has changed. */
async function observe(db: DbOrTransaction, rollout: Open) {
  const { organizationId, id: rolloutId, farmId } = rollout
  const rows = await db.rolloutEdge.findMany({
    where: { organizationId, rolloutId },
    orderBy: { position: 'asc' },
    select: {
      edgeId: true,
      wave: true,
      state: true,
      cause: true,
      attempt: true,
      orderedAt: true,
      healthySince: true,
    },
  })
  // An edge whose site is in the trash, or in another farm, is not there.
  const found = await db.edge.findMany({
    where: {
      organizationId,
      id: { in: rows.map(({ edgeId }) => edgeId) },
      site: { farmId, deletionId: null },
    },
    select: edgeFactsSelect,
  })
  const edgeOf = new Map(found.map((edge) => [edge.id, edge]))
  const observed = []
  for (const row of rows) {
    const edge = edgeOf.get(row.edgeId)
    const seen = observeEdge(row, edge ? edgeFactsOf(edge) : null, rollout)
    const isSame =
      seen.state === row.state &&
      seen.cause === row.cause &&
      seen.healthySince?.getTime() === row.healthySince?.getTime()
    if (!isSame)
      await db.rolloutEdge.update({
        where: { organizationId_rolloutId_edgeId: { organizationId, rolloutId, edgeId: row.edgeId } },
        data: seen,
        select: { edgeId: true },
      })
    observed.push({ ...seen, edgeId: row.edgeId, wave: row.wave, name: edge?.name ?? null })
  }
  return observed
}

/** Takes the edges of a wave's sites in that are not in it yet: some may have been enrolled since it was planned. */
export async function takeInEdges(
  db: DbOrTransaction | DbTransaction,
  { organizationId, id: rolloutId, farmId, wave }: { organizationId: string; id: string; farmId: string; wave: number },
): Promise<void> {
  await db.$executeRaw`
    insert into rollout_edge (organization_id, rollout_id, edge_id, site_id, wave, position)
    select edge.organization_id, ${rolloutId}::uuid, edge.id, site.id, ${wave},
      (select coalesce(max(position), 0) from rollout_edge as known
        where known.organization_id = edge.organization_id and known.rollout_id = ${rolloutId}::uuid)
      + row_number() over (order by site.name, site.id, edge.name, edge.id)
    from rollout_site as chosen join site on site.organization_id = chosen.organization_id and site.id = chosen.site_id
      join edge on edge.organization_id = site.organization_id and edge.site_id = site.id
    where chosen.organization_id = ${organizationId}::uuid and chosen.rollout_id = ${rolloutId}::uuid
      and chosen.wave = ${wave} and site.farm_id = ${farmId}::uuid and site.deletion_id is null
      and edge.revoked_at is null
    on conflict (organization_id, rollout_id, edge_id) do nothing`
}

/** One edge of a site after the other, so that the others serve its devices meanwhile. */
async function orderNext(db: DbOrTransaction, rollout: Open): Promise<void> {
  const { organizationId, id: rolloutId, farmId, wave, version, now } = rollout
  const waiting = await db.rolloutEdge.findMany({
    where: { organizationId, rolloutId, wave, state: 'waiting' },
    orderBy: { position: 'asc' },
    select: { edgeId: true, siteId: true },
  })
  const busy = await db.rolloutEdge.findMany({
    where: { organizationId, rolloutId, wave, state: 'ordered' },
    select: { siteId: true },
  })
  const busySites = new Set(busy.map(({ siteId }) => siteId))
  for (const { edgeId, siteId } of waiting) {
    if (busySites.has(siteId)) continue
    busySites.add(siteId)
    const edge = await db.edge.findUnique({
      where: { ...ownRow({ organizationId }, edgeId), site: { farmId, deletionId: null } },
      select: edgeFactsSelect,
    })
    // The next look at it says that it is left.
    if (!edge || edge.revokedAt) continue
    const change = await setWantedRelease(db, { organizationId, ...edge }, version)
    await db.rolloutEdge.update({
      where: { organizationId_rolloutId_edgeId: { organizationId, rolloutId, edgeId } },
      data: {
        state: 'ordered',
        attempt: change.after.releaseAttempt,
        orderedAt: now,
        formerVersion: edge.agentVersion,
        formerWanted: edge.wantedRelease,
      },
      select: { edgeId: true },
    })
    const place = { farmId, siteId: edge.siteId, collectionId: null }
    await recordDoings({ db, now }, jobDoer(organizationId, 'rollouts'), [
      { ...change, place, action: 'rollout.orderEdge' },
    ])
  }
}

interface Move {
  action: string
  data: NonNullable<Parameters<DbTransaction['rollout']['update']>[0]>['data']
  /** For the audit log, beside what changed. */
  facts: Record<string, string | number | null>
}

async function move(db: DbOrTransaction, rollout: Open, { action, data, facts }: Move): Promise<{ revision: number }> {
  const { organizationId, id, farmId, version, now, state, wave } = rollout
  const after = await db.rollout.update({
    where: ownRow({ organizationId }, id),
    data: { ...data, revision: { increment: 1 } },
    select: { state: true, wave: true, revision: true },
  })
  await recordDoings({ db, now }, jobDoer(organizationId, 'rollouts'), [
    {
      action,
      kind: 'rollout',
      id,
      name: version,
      place: { farmId, siteId: null, collectionId: null },
      before: { state, wave: wave + 1 },
      after: { state: after.state, wave: after.wave + 1, ...facts },
    },
  ])
  return after
}
