import type { z } from 'zod'
import { visibleFarms } from '../access/visible.ts'
import { afterName, byName, cutNamedPage, nameContains } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import type { farmListInput, farmPage } from './schema.ts'

export async function listFarms(
  { db, actor }: ServiceContext,
  input: z.output<typeof farmListInput>,
): Promise<z.infer<typeof farmPage>> {
  const rows = await db.farm.findMany({
    where: {
      organizationId: actor.organizationId,
      ...nameContains(input.search),
      AND: [visibleFarms(actor), afterName(input.cursor)],
    },
    orderBy: byName,
    take: input.limit + 1,
    select: { id: true, name: true, createdAt: true, revision: true },
  })
  return cutNamedPage(rows, input.limit, (row) => ({ ...row, createdAt: row.createdAt.toISOString() }))
}
