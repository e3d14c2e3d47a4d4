import type { z } from 'zod'
import { visibleEdges } from '../access/visible.ts'
import { afterName, cutPage, nameContains } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { edgeSummaryOf, edgeSummarySelect } from './rows.ts'
import type { edgeListInput, edgePage } from './schema.ts'

export async function listEdges(
  { db, clock, actor }: ServiceContext,
  input: z.output<typeof edgeListInput>,
): Promise<z.infer<typeof edgePage>> {
  const now = clock()
  const rows = await db.edge.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.siteId ? { siteId: input.siteId } : {}),
      ...nameContains(input.search),
      AND: [visibleEdges(actor), afterName(input.cursor)],
    },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: edgeSummarySelect,
  })
  return cutPage(rows, input.limit, {
    item: (row) => edgeSummaryOf(row, now),
    key: (row) => [row.name, row.id],
  })
}
