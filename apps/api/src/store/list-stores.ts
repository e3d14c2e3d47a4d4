import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleStores } from '../access/visible.ts'
import { byName, nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type storeDetail, type storeListInput, type storePage, storeSort, type storeSummary } from './schema.ts'

const vdisksShownMax = 100

const storeSelect = {
  id: true,
  farmId: true,
  name: true,
  note: true,
  revision: true,
  createdAt: true,
  farm: { select: { name: true } },
  _count: { select: { vdisks: true } },
} satisfies Prisma.StoreSelect
type StoreRow = Prisma.StoreGetPayload<{ select: typeof storeSelect }>

export async function listStores(
  { db, actor }: ServiceContext,
  input: z.output<typeof storeListInput>,
): Promise<z.infer<typeof storePage>> {
  const order = listOrder(storeSort, input)
  const rows = await db.store.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...nameContains(input.search),
      AND: [visibleStores(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: storeSelect,
  })
  return order.page(rows, storeSummaryOf)
}

/** Throws `not_found`. */
export async function getStore({ db, actor }: ServiceContext, storeId: string): Promise<z.infer<typeof storeDetail>> {
  const row = await db.store.findUnique({
    where: ownRow(actor, storeId),
    select: {
      ...storeSelect,
      vdisks: {
        orderBy: byName,
        take: vdisksShownMax,
        select: { id: true, name: true, _count: { select: { versions: true } } },
      },
    },
  })
  if (!row) throw new AppError('not_found')
  return {
    ...storeSummaryOf(row),
    vdisks: row.vdisks.map(({ id, name, _count }) => ({ id, name, versionCount: _count.versions })),
  }
}

function storeSummaryOf({ farm, _count, createdAt, ...row }: StoreRow): z.infer<typeof storeSummary> {
  return {
    id: row.id,
    farmId: row.farmId,
    name: row.name,
    note: row.note,
    revision: row.revision,
    farmName: farm.name,
    vdiskCount: _count.vdisks,
    createdAt: createdAt.toISOString(),
  }
}
