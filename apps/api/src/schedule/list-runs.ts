import type { z } from 'zod'
import { visibleBoots, visibleDevices } from '../access/visible.ts'
import { readPlainBoots } from '../boot/public.ts'
import { cutPage, decodeCursor } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { runSummaryOf, runSummarySelect } from './rows.ts'
import {
  type RunDetail,
  type runDevicePage,
  type runDevicesInput,
  type runPage,
  runSort,
  type runsInput,
} from './schema.ts'

/** Throws `not_found` for the schedule. */
export async function listRuns(
  { db, actor: { organizationId } }: ServiceContext,
  { scheduleId, ...asked }: z.output<typeof runsInput>,
): Promise<z.infer<typeof runPage>> {
  const order = listOrder(runSort, asked)
  const schedule = await db.schedule.findUnique({
    where: ownRow({ organizationId }, scheduleId),
    select: { id: true },
  })
  if (!schedule) throw new AppError('not_found')
  const rows = await db.scheduleRun.findMany({
    where: { organizationId, scheduleId, ...order.where },
    orderBy: order.orderBy,
    take: order.take,
    select: runSummarySelect,
  })
  return order.page(rows, runSummaryOf)
}

/** Throws `not_found`. */
export async function getRun({ db, actor: { organizationId } }: ServiceContext, runId: string): Promise<RunDetail> {
  const row = await db.scheduleRun.findUnique({
    where: ownRow({ organizationId }, runId),
    select: {
      ...runSummarySelect,
      power: true,
      ratePerMinute: true,
      schedule: { select: { name: true, farmId: true, timeZone: true } },
    },
  })
  if (!row) throw new AppError('not_found')
  const { farmId, timeZone } = row.schedule
  const edges = await readEdges(db, { organizationId, runId })
  return { ...runSummaryOf(row), farmId, timeZone, power: row.power, ratePerMinute: row.ratePerMinute, edges }
}

const edgesShownMax = 50

/** Those that have not reported the end: whoever waits for a run wants to know for whom. */
async function readEdges(
  db: ServiceContext['db'],
  of: { organizationId: string; runId: string },
): Promise<RunDetail['edges']> {
  const missing = { state: { in: ['away', 'not_reported', 'waiting', 'running'] } }
  const [all, missingCount, rows] = await Promise.all([
    db.scheduleRunEdge.count({ where: of }),
    db.scheduleRunEdge.count({ where: { ...of, ...missing } }),
    db.scheduleRunEdge.findMany({
      where: { ...of, ...missing },
      // `away` comes first by its name, too.
      orderBy: [{ state: 'asc' }, { edgeId: 'asc' }],
      take: edgesShownMax,
      select: {
        edgeId: true,
        state: true,
        changedAt: true,
        edge: { select: { name: true, site: { select: { name: true } } } },
      },
    }),
  ])
  return {
    all,
    reported: all - missingCount,
    missing: rows.map(({ edgeId, state, changedAt, edge }) => ({
      edgeId,
      name: edge.name,
      siteName: edge.site.name,
      // The database takes no other words.
      state: state as RunDetail['edges']['missing'][number]['state'],
      since: changedAt.toISOString(),
    })),
  }
}

/** In the order in which they are started. Throws `not_found` for the run. */
export async function listRunDevices(
  { db, actor }: ServiceContext,
  { runId, state, cursor, limit }: z.output<typeof runDevicesInput>,
): Promise<z.infer<typeof runDevicePage>> {
  const { organizationId } = actor
  const after = decodeCursor(cursor)
  const run = await db.scheduleRun.findUnique({
    where: ownRow({ organizationId }, runId),
    select: { id: true },
  })
  if (!run) throw new AppError('not_found')
  const rows = await db.scheduleRunDevice.findMany({
    where: {
      organizationId,
      runId,
      ...(state ? { state } : {}),
      ...(after ? { position: { gt: positionOf(after[0]) } } : {}),
    },
    orderBy: { position: 'asc' },
    take: limit + 1,
    select: {
      deviceId: true,
      position: true,
      state: true,
      reason: true,
      text: true,
      sentAt: true,
      bootId: true,
    },
  })
  const { deviceOf, bootOf } = await readNamed({ db, actor }, rows)
  return cutPage(rows, limit, {
    item: ({ sentAt, bootId, ...row }) => {
      const device = deviceOf.get(row.deviceId)
      const boot = bootOf.get(bootId ?? '')
      return {
        ...row,
        name: device?.name ?? null,
        siteName: device?.site.name ?? null,
        sentAt: sentAt?.toISOString() ?? null,
        boot: boot
          ? {
              id: boot.id,
              startedAt: boot.startedAt.toISOString(),
              outcome: boot.outcome,
              totalUs: Number(boot.totalUs),
            }
          : null,
      }
    },
    key: (row) => [String(row.position), row.deviceId],
  })
}

/** A device in the trash, or now at another place, is invisible here, but was in the run all the same. */
async function readNamed(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  rows: { deviceId: string; bootId: string | null }[],
) {
  const ids = rows.map(({ deviceId }) => deviceId)
  const devices = await db.device.findMany({
    where: { organizationId: actor.organizationId, id: { in: ids }, AND: [visibleDevices(actor)] },
    select: { id: true, name: true, site: { select: { name: true } } },
  })
  const bootIds = rows.flatMap(({ bootId }) => bootId ?? [])
  const boots = await readPlainBoots({ db, actor }, bootIds, await visibleBoots({ db, actor }))
  return {
    deviceOf: new Map(devices.map((device) => [device.id, device])),
    bootOf: new Map(boots.map((boot) => [boot.id, boot])),
  }
}

function positionOf(text: string): number {
  const position = Number(text)
  if (Number.isSafeInteger(position)) return position
  throw new AppError('invalid', { public: 'The cursor does not belong to this list.' })
}
