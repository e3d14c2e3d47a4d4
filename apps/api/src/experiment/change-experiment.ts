import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChanges } from '../events/record-change.ts'
import { overlaid } from '../rules/boot-settings.ts'
import { endExperiment, withdrawTrials } from './end-experiment.ts'
import { settingsOf } from './judge-cells.ts'
import { readExperiment } from './read-experiments.ts'
import type { applyExperimentInput, ExperimentDetail, experimentChangeInput } from './schema.ts'

type Asked = z.output<typeof experimentChangeInput>

/** Starts no further boots until it is resumed; boots in progress count. Throws as `change` does. */
export function pauseExperiment(context: ServiceContext, asked: Asked): Promise<ExperimentDetail> {
  return change(context, asked, async (db, { state, key }) => {
    if (state !== 'running') throw notNow('is not running, so it cannot be paused')
    await withdrawTrials(db, key)
    await db.experiment.update({ where: ownRow(key, key.id), data: { state: 'paused' } })
    return []
  })
}

/** Throws as `change` does, and `conflict` for one whose time is over. */
export function resumeExperiment(context: ServiceContext, asked: Asked): Promise<ExperimentDetail> {
  return change(context, asked, async (db, { state, key }) => {
    if (state !== 'paused') throw notNow('is not paused')
    await db.experiment.update({ where: ownRow(key, key.id), data: { state: 'running' } })
    return []
  })
}

/** Ends it: no boot gets its settings any more, and the boots so far are its result. Throws as `change` does. */
export function stopExperiment(context: ServiceContext, asked: Asked): Promise<ExperimentDetail> {
  return change(context, asked, async (db, { state, key }) => {
    if (state !== 'running' && state !== 'paused') throw notNow('is over')
    const reason = `${context.actor.userName} stopped it.`
    await endExperiment(db, key, { state: 'stopped', reason, now: context.clock() })
    return []
  })
}

/**
 * Gives the settings of a cell to the collections of the experiment's devices, for all their devices and from their
 * next boot on. Throws as `change` does; `conflict` while the experiment runs, `invalid` for a cell without settings.
 */
export function applyExperiment(
  context: ServiceContext,
  { cell, ...asked }: z.output<typeof applyExperimentInput>,
): Promise<ExperimentDetail> {
  return change(context, asked, async (db, { key, before }) => {
    if (before.endedAt === null) throw notNow('is not over: wait for its result, or stop it')
    const settings = settingsOf(before.cells[cell]?.settings ?? [])
    if (settings.length === 0)
      throw new AppError('invalid', { public: 'This cell has no setting that could be applied. Name another one.' })
    const { organizationId } = key
    const ids = [...new Set(before.devices.map(({ collectionId }) => collectionId))].toSorted()
    const collections = await db.collection.findMany({
      where: { organizationId, siteId: before.siteId, id: { in: ids } },
      orderBy: { id: 'asc' },
      select: { id: true, name: true, bootSettings: true },
    })
    if (collections.length === 0) throw notNow('has no device left in its site')
    const changes: Changes = []
    for (const { id, name, bootSettings } of collections) {
      const after = overlaid(bootSettings, settings)
      if (after.join(' ') === bootSettings.join(' ')) continue
      await db.collection.update({
        where: ownRow(key, id),
        data: { bootSettings: after },
        select: { id: true },
      })
      const place = { farmId: before.farmId, siteId: before.siteId, collectionId: id }
      changes.push({ kind: 'collection', id, name, place, before: { bootSettings }, after: { bootSettings: after } })
    }
    await db.experiment.update({
      where: ownRow(key, key.id),
      data: { appliedCell: cell, appliedAt: context.clock(), appliedByName: context.actor.userName },
    })
    return changes
  })
}

interface Locked {
  key: { organizationId: string; id: string }
  state: ExperimentDetail['state']
  before: ExperimentDetail
}

type Changes = Parameters<typeof recordChanges>[1]

/** Throws `not_found`, and `conflict` if somebody else changed it meanwhile or the step does not fit its state. */
async function change(
  context: ServiceContext,
  { experimentId, revision }: Asked,
  work: (db: DbTransaction, locked: Locked) => Promise<Changes>,
): Promise<ExperimentDetail> {
  const { organizationId } = context.actor
  const key = { organizationId, id: experimentId }
  return context.db.$transaction(async (db) => {
    await lockRow(db, 'experiment', { ...key, strength: 'update' })
    const before = await readExperiment({ db, organizationId }, experimentId)
    if (before.revision !== revision)
      throw new AppError('conflict', {
        public: `This experiment was changed in the meantime: it is ${before.state}. Load the latest version.`,
        extra: { revision: before.revision },
      })
    const changes = await work(db, { key, before, state: before.state })
    await db.experiment.update({ where: ownRow(key, experimentId), data: { revision: { increment: 1 } } })
    const after = await readExperiment({ db, organizationId }, experimentId)
    const place = { farmId: before.farmId, siteId: before.siteId, collectionId: null }
    const experiment = { kind: 'experiment', id: experimentId, name: before.name, place }
    await recordChanges({ ...context, db }, [
      { ...experiment, before: factsOf(before), after: factsOf(after) },
      ...changes,
    ])
    return after
  })
}

function factsOf({ state, applied }: ExperimentDetail) {
  return { state, appliedCell: applied?.cell ?? null }
}

function notNow(what: string): AppError {
  return new AppError('conflict', { public: `This experiment ${what}.` })
}
