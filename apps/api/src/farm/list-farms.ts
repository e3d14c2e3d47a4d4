import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleFarms } from '../access/visible.ts'
import { nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type farmListInput, type farmPage, farmSort, type farmView } from './schema.ts'

export async function listFarms(
  { db, actor }: ServiceContext,
  input: z.output<typeof farmListInput>,
): Promise<z.infer<typeof farmPage>> {
  const order = listOrder(farmSort, input)
  const rows = await db.farm.findMany({
    where: {
      organizationId: actor.organizationId,
      ...nameContains(input.search),
      AND: [visibleFarms(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: farmSelect,
  })
  return order.page(rows, farmViewOf)
}

/** Throws `not_found`. */
export async function getFarm({ db, actor }: ServiceContext, farmId: string): Promise<z.infer<typeof farmView>> {
  const row = await db.farm.findUnique({ where: ownRow(actor, farmId), select: farmSelect })
  if (!row) throw new AppError('not_found')
  return farmViewOf(row)
}

const farmSelect = { id: true, name: true, createdAt: true, revision: true } satisfies Prisma.FarmSelect

function farmViewOf(row: Prisma.FarmGetPayload<{ select: typeof farmSelect }>): z.infer<typeof farmView> {
  return { ...row, createdAt: row.createdAt.toISOString() }
}
