import type { z } from 'zod'
import { visibleMenus } from '../access/visible.ts'
import { afterName, byName, cutNamedPage, nameContains } from '../context/keyset.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { menuDetailOf, menuDetailSelect, menuSummaryOf, menuSummarySelect } from './rows.ts'
import type { MenuDetail, menuChoices, menuListInput, menuPage } from './schema.ts'

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
  const rows = await db.bootMenu.findMany({
    where: {
      organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...(input.siteId ? { farm: { sites: { some: { organizationId, id: input.siteId } } } } : {}),
      ...nameContains(input.search),
      AND: [visibleMenus(actor), afterName(input.cursor)],
    },
    orderBy: byName,
    take: input.limit + 1,
    select: menuSummarySelect(actor),
  })
  return cutNamedPage(rows, input.limit, menuSummaryOf)
}
