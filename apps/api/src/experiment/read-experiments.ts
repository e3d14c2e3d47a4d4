import type { z } from 'zod'
import { ofLiveSite, visibleExperiments } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { instantOrNull, listSort } from '../rules/list-sort.ts'
import { type ExperimentRow, experimentSelect, experimentSummaryOf, judgedOf } from './rows.ts'
import {
  cellsOfJson,
  type ExperimentDetail,
  type ExperimentSummary,
  type experimentListInput,
  type experimentPage,
  experimentSort,
  type trialListInput,
  type trialPage,
} from './schema.ts'
import { cellTitle } from './setting-text.ts'

interface Own {
  db: DbOrTransaction
  organizationId: string
}

export async function listExperiments(
  { db, actor }: ServiceContext,
  { siteId, state, ...asked }: z.output<typeof experimentListInput>,
): Promise<z.infer<typeof experimentPage>> {
  const { organizationId } = actor
  const order = listOrder(experimentSort, asked)
  const rows = await db.experiment.findMany({
    where: {
      organizationId,
      ...(siteId ? { siteId } : {}),
      ...(state ? { state } : {}),
      AND: [visibleExperiments(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: experimentSelect,
  })
  const summaries = new Map((await summariesOf({ db, organizationId }, rows)).map((summary) => [summary.id, summary]))
  return order.page(rows, ({ id }) => summaries.get(id) as ExperimentSummary)
}

async function summariesOf({ db, organizationId }: Own, rows: ExperimentRow[]): Promise<ExperimentSummary[]> {
  const experimentId = { in: rows.map(({ id }) => id) }
  const counted = await db.experimentTrial.groupBy({
    by: ['experimentId', 'state'],
    where: { organizationId, experimentId },
    _count: true,
  })
  const devices = await db.experimentTrial.groupBy({
    by: ['experimentId', 'deviceId'],
    where: { organizationId, experimentId },
  })
  return rows.map((row) =>
    experimentSummaryOf(row, {
      counts: counted.filter((of) => of.experimentId === row.id).map(({ state, _count: count }) => ({ state, count })),
      deviceCount: devices.filter((of) => of.experimentId === row.id).length,
    }),
  )
}

/** Throws `not_found`. */
export function getExperiment({ db, actor }: ServiceContext, experimentId: string): Promise<ExperimentDetail> {
  return readExperiment({ db, organizationId: actor.organizationId }, experimentId)
}

/** Throws `not_found`. */
export async function readExperiment({ db, organizationId }: Own, experimentId: string): Promise<ExperimentDetail> {
  const row = await db.experiment.findUnique({
    where: { ...ownRow({ organizationId }, experimentId), ...ofLiveSite },
    select: experimentSelect,
  })
  if (!row) throw new AppError('not_found')
  const [summary] = await summariesOf({ db, organizationId }, [row])
  if (!summary) throw new AppError('not_found')
  const trials = await db.experimentTrial.findMany({
    where: { organizationId, experimentId },
    select: { cell: true, deviceId: true, repetition: true, state: true, durationUs: true, phases: true },
  })
  const devices = await db.device.findMany({
    where: { organizationId, id: { in: [...new Set(trials.map(({ deviceId }) => deviceId))] } },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    select: { id: true, name: true, collectionId: true, collection: { select: { name: true } } },
  })
  return {
    ...summary,
    ...judgedOf(row, trials),
    devices: devices.map(({ collection, ...device }) => ({ ...device, collectionName: collection.name })),
  }
}

const trialSort = listSort({ endedAt: instantOrNull('endedAt') }, '-endedAt')

/** Those that ended last come first, and those that have not ended last. */
export async function listTrials(
  { db, actor: { organizationId } }: Pick<ServiceContext, 'db' | 'actor'>,
  { experimentId, cell, state, cursor, limit }: z.output<typeof trialListInput>,
): Promise<z.infer<typeof trialPage>> {
  const experiment = await db.experiment.findUnique({
    where: ownRow({ organizationId }, experimentId),
    select: { cells: true },
  })
  if (!experiment) throw new AppError('not_found')
  const cells = cellsOfJson(experiment.cells)
  const order = listOrder(trialSort, { cursor, limit, sort: '-endedAt' })
  const rows = await db.experimentTrial.findMany({
    where: {
      organizationId,
      experimentId,
      ...(cell === undefined ? {} : { cell }),
      ...(state ? { state } : {}),
      AND: [order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: {
      id: true,
      deviceId: true,
      repetition: true,
      cell: true,
      state: true,
      reason: true,
      bootId: true,
      durationUs: true,
      endedAt: true,
      device: { select: { name: true } },
    },
  })
  return order.page(rows, ({ id: trialId, device, durationUs, endedAt, ...trial }) => ({
    trialId,
    ...trial,
    deviceName: device.name,
    title: cellTitle(cells[trial.cell] ?? []),
    durationUs: durationUs === null ? null : Number(durationUs),
    endedAt: endedAt?.toISOString() ?? null,
  }))
}
