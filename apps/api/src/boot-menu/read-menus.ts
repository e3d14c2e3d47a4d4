import type { z } from 'zod'
import { visibleMenus } from '../access/visible.ts'
import { byName, nameContains } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { menuDetailOf, menuDetailSelect, menuSummaryOf, menuSummarySelect } from './rows.ts'
import { type MenuDetail, type menuChoices, type menuListInput, type menuPage, menuSort } from './schema.ts'

const vdisksMax = 500
const versionsMax = 50

/** Throws `not_found`. */
export async function getMenu({ db, clock, actor }: ServiceContext, menuId: string): Promise<MenuDetail> {
  const row = await db.bootMenu.findUnique({ where: ownRow(actor, menuId), select: menuDetailSelect(actor) })
  if (!row) throw new AppError('not_found')
  return menuDetailOf(row, clock())
}

/** Returns what a menu of the farm can start. Throws `not_found`. */
export async function getMenuChoices(
  { db, actor: { organizationId } }: ServiceContext,
  farmId: string,
): Promise<z.infer<typeof menuChoices>> {
  const farm = await db.farm.findUnique({
    where: ownRow({ organizationId }, farmId),
    select: {
      vdisks: {
        orderBy: byName,
        take: vdisksMax,
        select: {
          id: true,
          name: true,
          versions: {
            where: { sealedAt: { not: null } },
            orderBy: { number: 'desc' },
            take: versionsMax,
            select: { id: true, number: true },
          },
        },
      },
    },
  })
  if (!farm) throw new AppError('not_found')
  return farm.vdisks
}

export async function listMenus(
  { db, actor }: ServiceContext,
  input: z.output<typeof menuListInput>,
): Promise<z.infer<typeof menuPage>> {
  const { organizationId } = actor
  const order = listOrder(menuSort, input)
  const rows = await db.bootMenu.findMany({
    where: {
      organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...(input.siteId ? { farm: { sites: { some: { organizationId, id: input.siteId } } } } : {}),
      ...nameContains(input.search),
      AND: [visibleMenus(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: menuSummarySelect(actor),
  })
  return order.page(rows, menuSummaryOf)
}
