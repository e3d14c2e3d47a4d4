import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { findPlaces } from '../access/find-place.ts'
import { visibleDevices } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext, withTrash } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChanges, recordNothing } from '../events/record-change.ts'
import { filterOf } from './list-devices.ts'
import { bootAgain, orderPower } from './order-power.ts'
import { type DeviceFields, type PlannedDevice, planDevices } from './plan-devices.ts'
import {
  bulkMax,
  type changeManyInput,
  type deviceFilterInput,
  type deviceIdsResult,
  deviceSort,
  type PlanResult,
  type powerManyInput,
  previewRowsMax,
  type removeManyInput,
} from './schema.ts'
import { changedFields, writeDevices } from './write-devices.ts'

/** The devices that the filters leave, in their order: as many as can be changed at once. */
export async function listDeviceIds(
  { db, actor }: ServiceContext,
  filter: z.output<typeof deviceFilterInput>,
): Promise<z.infer<typeof deviceIdsResult>> {
  const { orderBy } = listOrder(deviceSort, { ...filter, limit: bulkMax })
  const rows = await db.device.findMany({
    where: { organizationId: actor.organizationId, AND: [visibleDevices(actor), filterOf(filter)] },
    orderBy,
    take: bulkMax + 1,
    select: { id: true },
  })
  return { ids: rows.slice(0, bulkMax).map(({ id }) => id), isCut: rows.length > bulkMax }
}

/** All of them, or none if one has a problem. Throws `not_found`. */
export async function changeManyDevices(
  context: ServiceContext,
  { deviceIds, preview, addTags = [], removeTags = [], menu, ...fields }: z.output<typeof changeManyInput>,
): Promise<PlanResult> {
  const { db, actor } = context
  const ids = [...new Set(deviceIds)]
  const rows = await db.device.findMany({
    where: { organizationId: actor.organizationId, id: { in: ids } },
    select: { id: true, tags: true },
  })
  const tagsOf = new Map(rows.map((row) => [row.id, row.tags]))
  const menuFields = menu && {
    bootMenuChoice: menu.choice,
    bootMenuId: menu.choice === 'own' ? menu.menuId : null,
  }
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  const planned = await planDevices(
    context,
    ids.map((deviceId) => {
      const kept = (tagsOf.get(deviceId) ?? []).filter((tag) => !removeTags.includes(tag))
      const tags = [...new Set([...kept, ...addTags])].sort()
      return { deviceId, fields: { ...given, ...menuFields, tags } as Partial<DeviceFields> }
    }),
  )
  return carryOutPlan(context, { planned, lines: null, preview })
}

/** Writes a plan without problems unless it is only a preview. */
export async function carryOutPlan(
  context: ServiceContext,
  { planned, lines, preview }: { planned: PlannedDevice[]; lines: number[] | null; preview: boolean },
): Promise<PlanResult> {
  const isRefused = planned.some(({ problems }) => problems.length > 0)
  const applied = !preview && !isRefused
  if (applied) await writeDevices(context, planned)
  if (!applied || planned.length === 0) recordNothing(context)
  const rows = planned.map((plan, index) => rowOf(plan, lines?.[index] ?? null))
  const countOf = (kind: (typeof rows)[number]['kind']) => rows.filter((row) => row.kind === kind).length
  const order = ['refused', 'created', 'changed', 'unchanged']
  return {
    applied,
    createdCount: countOf('created'),
    changedCount: countOf('changed'),
    unchangedCount: countOf('unchanged'),
    refusedCount: countOf('refused'),
    rows: rows.sort((left, right) => order.indexOf(left.kind) - order.indexOf(right.kind)).slice(0, previewRowsMax),
  }
}

function rowOf(
  { deviceId, before, after, problems, effects, siteId, siteIdBefore }: PlannedDevice,
  line: number | null,
): PlanResult['rows'][number] {
  const fields = before ? changedFields(before, after) : []
  const isSame = before !== null && siteId === siteIdBefore && fields.length === 0
  const kind = problems.length > 0 ? 'refused' : !before ? 'created' : isSame ? 'unchanged' : 'changed'
  const words = fields.map((name) => fieldWords[name])
  return {
    line,
    deviceId,
    name: after.name,
    mac: after.mac,
    kind,
    problems,
    changes: [...new Set(words), ...effects],
  }
}

const fieldWords: Record<keyof DeviceFields, string> = {
  collectionId: 'collection',
  name: 'name',
  mac: 'MAC address',
  enabled: 'enabled',
  tags: 'tags',
  personality: 'custom attributes',
  vdiskId: 'vDisk',
  bootProgramSet: 'boot programs',
  deviceType: 'device type',
  bootMenuChoice: 'boot menu',
  bootMenuId: 'boot menu',
}

/** Each into the trash, restored one by one. Throws `not_found` if one is gone. */
export async function removeManyDevices(
  context: ServiceContext,
  { deviceIds }: z.output<typeof removeManyInput>,
): Promise<{ count: number }> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const ids = [...new Set(deviceIds)]
  const where = { organizationId, id: { in: ids } }
  const rows = await db.device.findMany({ where, select: { id: true, name: true } })
  const places = await findPlaces(db, 'device', { organizationId, ids })
  const deleted = rows.flatMap(({ id, name }) => {
    const place = places.get(id)
    return place ? [{ id, name, place, deletionId: randomUUID() }] : []
  })
  if (deleted.length < ids.length) throw new AppError('not_found')
  await db.deletion.createMany({
    data: deleted.map(({ id, name, place, deletionId }) => ({
      organizationId,
      id: deletionId,
      kind: 'device',
      objectId: id,
      objectName: name,
      ...place,
      counts: { device: 1 },
      deletedAt: clock(),
      deletedByUserId: actor.userId,
      deletedByName: actor.userName,
    })),
  })
  const marks = deleted.map(({ id, deletionId }) => ({ id, deletion_id: deletionId }))
  await withTrash(
    db,
    () => db.$executeRaw`update device set deletion_id = mark.deletion_id
      from jsonb_to_recordset(${JSON.stringify(marks)}::jsonb) as mark (id uuid, deletion_id uuid)
      where device.organization_id = ${organizationId}::uuid and device.id = mark.id and device.deletion_id is null`,
  )
  await recordChanges(
    context,
    deleted.map(({ id, name, place }) => ({
      kind: 'device',
      id,
      name,
      place,
      before: { name },
      after: null,
    })),
  )
  return { count: deleted.length }
}

const reasonsToldMax = 5

/** All of them, or none. Throws `conflict` with the devices that cannot get the order, and why. */
export async function powerManyDevices(
  context: ServiceContext,
  { deviceIds, order, traceparent }: z.output<typeof powerManyInput>,
): Promise<{ count: number }> {
  const { db, actor } = context
  const ids = [...new Set(deviceIds)]
  const reasons: string[] = []
  for (const deviceId of ids)
    try {
      if (order === 'power_on') await bootAgain(context, { deviceId, traceparent })
      else await orderPower(context, { deviceId, order, traceparent })
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'conflict') throw error
      const where = ownRow(actor, deviceId)
      const { name } = await db.device.findUniqueOrThrow({ where, select: { name: true } })
      reasons.push(`${name}: ${error.publicText}`)
    }
  if (reasons.length === 0) return { count: ids.length }
  const more = reasons.length > reasonsToldMax ? ` And ${reasons.length - reasonsToldMax} more.` : ''
  throw new AppError('conflict', {
    public: `Nothing was changed because ${reasons.length} of ${ids.length} devices cannot be changed: ${reasons.slice(0, reasonsToldMax).join(' ')}${more}`,
  })
}
