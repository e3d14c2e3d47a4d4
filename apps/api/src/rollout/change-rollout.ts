import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { setWantedRelease } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChanges } from '../events/record-change.ts'
import { troubles } from './observe-edge.ts'
import { readRollout } from './read-rollouts.ts'
import { edgeFactsSelect } from './rows.ts'
import type { RolloutDetail, resumeRolloutInput, rolloutChangeInput } from './schema.ts'

type EdgeChange = Awaited<ReturnType<typeof setWantedRelease>>

/** Orders no further edges until it is resumed; those that have their order continue. Throws as `change` does. */
export function pauseRollout(
  context: ServiceContext,
  input: z.output<typeof rolloutChangeInput>,
): Promise<RolloutDetail> {
  return change(context, input, async (transaction, { state, where }) => {
    if (state !== 'running') throw notNow('is not running, so it cannot be paused')
    await transaction.rollout.update({
      where,
      data: { state: 'paused', pauseReason: 'by_hand', pausedEdgeId: null, pausedAt: context.clock() },
    })
    return []
  })
}

/**
 * Continues a paused rollout. Edges that failed, fell silent or are late get a new order, or are left as they are and
 * no longer waited for. Throws as `change` does.
 */
export function resumeRollout(
  context: ServiceContext,
  { troubled, ...input }: z.output<typeof resumeRolloutInput>,
): Promise<RolloutDetail> {
  const { clock, actor } = context
  const { organizationId } = actor
  const { rolloutId } = input
  return change(context, input, async (transaction, { state, version, where }) => {
    if (state !== 'paused') throw notNow('is not paused')
    const now = clock()
    const rows = await edgesIn(transaction, { organizationId, rolloutId, state: { in: [...troubles] } })
    const changes: EdgeChange[] = []
    for (const { edge, edgeId, state: trouble } of rows) {
      const key = { organizationId, rolloutId, edgeId }
      const retried =
        troubled === 'retry' ? await setWantedRelease(transaction, { organizationId, ...edge }, version) : null
      await transaction.rolloutEdge.update({
        where: { organizationId_rolloutId_edgeId: key },
        data: retried
          ? { state: 'ordered', cause: null, healthySince: null, orderedAt: now, attempt: retried.after.releaseAttempt }
          : { state: 'left', cause: trouble, healthySince: null },
      })
      if (retried) changes.push(retried)
    }
    await transaction.rollout.update({
      where,
      data: { state: 'running', pauseReason: null, pausedEdgeId: null, pausedAt: null },
    })
    return changes
  })
}

/** Does not wait until the wave has been healthy for long enough. Throws as `change` does. */
export function startNextWave(
  context: ServiceContext,
  input: z.output<typeof rolloutChangeInput>,
): Promise<RolloutDetail> {
  return change(context, input, async (transaction, { where, wave, before }) => {
    if (!before.mayStartNext)
      throw notNow(
        'cannot start its next wave: there is none, it is not running, or an edge does not run the release yet',
      )
    await transaction.rollout.update({ where, data: { wave: wave + 1, waveStartedAt: null } })
    return []
  })
}

/**
 * Ends the rollout. Edges that run the release keep it and its order; those that have their order and do not run it yet
 * lose it: they keep what they run. Throws as `change` does.
 */
export function cancelRollout(
  context: ServiceContext,
  input: z.output<typeof rolloutChangeInput>,
): Promise<RolloutDetail> {
  const { organizationId } = context.actor
  const { rolloutId } = input
  return change(context, input, async (transaction, { state, version, where }) => {
    if (state !== 'running' && state !== 'paused') throw notNow('is over')
    const open = { in: ['waiting', 'ordered', ...troubles] as const }
    const rows = await edgesIn(transaction, { organizationId, rolloutId, state: { in: [...open.in] } })
    const changes: EdgeChange[] = []
    // What somebody ordered since is not taken back.
    for (const { edge, attempt, formerWanted } of rows)
      if (edge.wantedRelease === version && edge.releaseAttempt === attempt)
        changes.push(await setWantedRelease(transaction, { organizationId, ...edge }, formerWanted))
    await transaction.rolloutEdge.updateMany({
      where: { organizationId, rolloutId, state: { in: [...open.in] } },
      data: { state: 'left', cause: 'cancelled', healthySince: null },
    })
    await transaction.rollout.update({
      where,
      data: {
        state: 'cancelled',
        endedAt: context.clock(),
        pauseReason: null,
        pausedEdgeId: null,
        pausedAt: null,
      },
    })
    return changes
  })
}

function edgesIn(
  transaction: DbTransaction,
  where: NonNullable<Parameters<DbTransaction['rolloutEdge']['findMany']>[0]>['where'],
) {
  return transaction.rolloutEdge.findMany({
    where: { ...where },
    orderBy: { position: 'asc' },
    select: { edgeId: true, state: true, attempt: true, formerWanted: true, edge: { select: edgeFactsSelect } },
  })
}

interface Locked {
  where: ReturnType<typeof ownRow>
  state: RolloutDetail['state']
  version: string
  wave: number
  before: RolloutDetail
}

/** Throws `not_found`, and `conflict` if somebody else changed it meanwhile or the step does not fit its state. */
async function change(
  context: ServiceContext,
  { rolloutId, revision }: z.output<typeof rolloutChangeInput>,
  work: (transaction: DbTransaction, locked: Locked) => Promise<EdgeChange[]>,
): Promise<RolloutDetail> {
  const { db, actor } = context
  const { organizationId } = actor
  return db.$transaction(async (transaction) => {
    await lockRow(transaction, 'rollout', { organizationId, id: rolloutId, strength: 'update' })
    const before = await readRollout({ db: transaction, organizationId }, rolloutId)
    if (before.revision !== revision)
      throw new AppError('conflict', {
        public: `This rollout was changed in the meantime: it is ${before.state} in wave ${before.wave + 1}. Load the latest version.`,
        extra: { revision: before.revision },
      })
    const where = ownRow(actor, rolloutId)
    const { version } = before
    const edges = await work(transaction, { where, before, ...before })
    await transaction.rollout.update({ where, data: { revision: { increment: 1 } } })
    const after = await readRollout({ db: transaction, organizationId }, rolloutId)
    const place = { farmId: before.farmId, siteId: null, collectionId: null }
    const rollout = { kind: 'rollout', id: rolloutId, name: version, place }
    await recordChanges({ ...context, db: transaction }, [
      { ...rollout, before: factsOf(before), after: factsOf(after) },
      ...edges.map((edge) => ({ ...edge, place })),
    ])
    return after
  })
}

function factsOf({ state, wave, counts }: RolloutDetail) {
  return { state, wave: wave + 1, leftEdges: counts.left }
}

function notNow(what: string): AppError {
  return new AppError('conflict', { public: `This rollout ${what}.` })
}
