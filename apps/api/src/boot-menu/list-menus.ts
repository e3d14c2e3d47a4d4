import type { z } from 'zod'
import { visibleMenus } from '../access/visible.ts'
import { afterName, cutPage, nameContains } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { menuSummaryOf, menuSummarySelect } from './rows.ts'
import type { menuListInput, menuPage } from './schema.ts'

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
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: menuSummarySelect,
  })
  return cutPage(rows, input.limit, { item: menuSummaryOf, key: (row) => [row.name, row.id] })
}
