import { randomInt } from 'node:crypto'
import type { DbTransaction } from '@bootfarm/db'
import { requireCurrent } from '../access/require-current.ts'
import { lockRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { cellsOf, planTrials } from './plan-experiment.ts'
import { readExperiment } from './read-experiments.ts'
import type { CreateExperiment, ExperimentDetail } from './schema.ts'

const hourMs = 3_600_000

/**
 * Starts an experiment: `advanceExperiments` boots its devices. Throws `not_found`; `invalid` for a device that is not
 * one of the site's; `conflict` for a device that is disabled or in another experiment, and a site without an edge.
 */
export async function createExperiment(context: ServiceContext, input: CreateExperiment): Promise<ExperimentDetail> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const { siteId, name, deviceIds, factors, repetitions, atOnce, bootSeconds, hours } = input
  const place = await requireCurrent(context, { kind: 'site', id: siteId })
  const cells = cellsOf(factors)
  const now = clock()
  return db.$transaction(async (transaction) => {
    // Locked, so that two at once do not take one device.
    await lockRow(transaction, 'site', { organizationId, id: siteId, strength: 'update' })
    await requireDevices(transaction, { organizationId, siteId, deviceIds })
    const seed = randomInt(2 ** 31)
    const { id } = await transaction.experiment.create({
      data: {
        organizationId,
        siteId,
        name,
        factors,
        cells,
        repetitions,
        atOnce,
        bootSeconds,
        seed,
        createdByName: actor.userName,
        createdAt: now,
        endsAt: new Date(now.getTime() + hours * hourMs),
      },
      select: { id: true },
    })
    const trials = planTrials({ devices: deviceIds.length, cells: cells.length, repetitions }, seed)
    await transaction.experimentTrial.createMany({
      data: trials.map(({ deviceIndex, position, repetition, cell }) => ({
        organizationId,
        experimentId: id,
        siteId,
        deviceId: deviceIds[deviceIndex] ?? '',
        position,
        repetition,
        cell,
        settings: cells[cell] ?? [],
      })),
    })
    await recordChange(
      { ...context, db: transaction },
      {
        kind: 'experiment',
        id,
        name,
        place,
        before: null,
        after: { name, deviceIds, factors, repetitions, atOnce, bootSeconds, hours },
      },
    )
    return readExperiment({ db: transaction, organizationId }, id)
  })
}

interface Wanted {
  organizationId: string
  siteId: string
  deviceIds: string[]
}

async function requireDevices(db: DbTransaction, { organizationId, siteId, deviceIds }: Wanted): Promise<void> {
  const devices = await db.device.findMany({
    where: { organizationId, siteId, id: { in: deviceIds } },
    select: { id: true, name: true, enabled: true },
  })
  if (devices.length !== deviceIds.length)
    throw new AppError('invalid', { public: 'The site has no such device. Select devices of one site.' })
  const disabled = devices.find(({ enabled }) => !enabled)
  if (disabled)
    throw new AppError('conflict', {
      public: `${disabled.name} is disabled, so no edge lets it boot. Enable it first.`,
    })
  const taken = await db.experimentTrial.findFirst({
    where: { organizationId, deviceId: { in: deviceIds }, experiment: { state: { in: ['running', 'paused'] } } },
    select: { device: { select: { name: true } }, experiment: { select: { name: true } } },
  })
  if (taken)
    throw new AppError('conflict', {
      public: `${taken.device.name} is in the experiment ${taken.experiment.name}. Stop that one, or wait until it is done.`,
    })
  const edge = await db.edge.findFirst({ where: { organizationId, siteId, revokedAt: null }, select: { id: true } })
  if (!edge) throw new AppError('conflict', { public: 'This site has no edge that could boot its devices.' })
}
