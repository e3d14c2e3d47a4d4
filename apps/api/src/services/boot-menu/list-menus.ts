import type { z } from 'zod'
import type { menuListInput, menuPage } from '../../domain/boot-menu-view.ts'
import { afterName, cutPage } from '../keyset.ts'
import { visibleMenus } from '../scope/visible.ts'
import type { ServiceContext } from '../service-context.ts'
import { menuSummaryOf, menuSummarySelect } from './menu-rows.ts'

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
      AND: [visibleMenus(actor), afterName(input.cursor)],
    },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: menuSummarySelect,
  })
  return cutPage(rows, input.limit, { item: menuSummaryOf, key: (row) => [row.name, row.id] })
}
