import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleCollections, visibleDevices } from '../access/visible.ts'
import { nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import { keyAlarms } from '../rules/device/device-key.ts'
import { personalityOf } from '../rules/device/personality.ts'
import {
  type CollectionDetail,
  type CollectionSummary,
  type collectionListInput,
  type collectionPage,
  collectionSort,
} from './schema.ts'

/** Throws `not_found`. */
export async function getCollection(context: ServiceContext, collectionId: string): Promise<CollectionDetail> {
  const { db, actor } = context
  const row = await db.collection.findUnique({
    where: ownRow(actor, collectionId),
    select: {
      ...collectionSummarySelect(actor),
      personality: true,
      templateDevice: { select: { id: true, name: true } },
      site: { select: { name: true, farmId: true, personality: true } },
    },
  })
  if (!row) throw new AppError('not_found')
  return {
    ...collectionSummaryOf(row),
    farmId: row.site.farmId,
    createdAt: row.createdAt.toISOString(),
    templateDevice: row.templateDevice,
    personality: personalityOf(row.personality),
    sitePersonality: personalityOf(row.site.personality),
    keys: await countKeys(context, collectionId),
  }
}

async function countKeys(
  { db, actor: { organizationId } }: ServiceContext,
  collectionId: string,
): Promise<CollectionDetail['keys']> {
  const ofCollection = { organizationId, collectionId }
  const alarmCount = await db.device.count({ where: { ...ofCollection, keyLabel: { in: [...keyAlarms] } } })
  const waiting = await db.device.aggregate({
    where: { ...ofCollection, keyLabel: 'key_waits' },
    _count: true,
    _max: { keyClaimedAt: true },
  })
  return { alarmCount, waitingCount: waiting._count, waitingUntil: waiting._max.keyClaimedAt?.toISOString() ?? null }
}

export function collectionSummarySelect(actor: Actor) {
  return {
    id: true,
    name: true,
    siteId: true,
    vdiskId: true,
    bootProgramSet: true,
    keyLearn: true,
    keyWithout: true,
    bootSettings: true,
    revision: true,
    createdAt: true,
    bootMenu: { select: { id: true, name: true } },
    site: { select: { name: true } },
    vdisk: { select: { name: true } },
    _count: { select: { devices: { where: visibleDevices(actor) } } },
  } satisfies Prisma.CollectionSelect
}
type CollectionSummaryRow = Prisma.CollectionGetPayload<{ select: ReturnType<typeof collectionSummarySelect> }>

export async function listCollections(
  { db, actor }: ServiceContext,
  input: z.output<typeof collectionListInput>,
): Promise<z.infer<typeof collectionPage>> {
  const order = listOrder(collectionSort, input)
  const rows = await db.collection.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.siteId ? { siteId: input.siteId } : {}),
      ...nameContains(input.search),
      AND: [visibleCollections(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: collectionSummarySelect(actor),
  })
  return order.page(rows, collectionSummaryOf)
}

export function collectionSummaryOf(row: CollectionSummaryRow): CollectionSummary {
  return {
    id: row.id,
    name: row.name,
    siteId: row.siteId,
    siteName: row.site.name,
    vdiskId: row.vdiskId,
    vdiskName: row.vdisk?.name ?? null,
    bootProgramSet: row.bootProgramSet,
    revision: row.revision,
    bootMenu: row.bootMenu,
    deviceCount: row._count.devices,
    keyLearn: row.keyLearn,
    keyWithout: row.keyWithout,
    bootSettings: row.bootSettings,
  }
}
