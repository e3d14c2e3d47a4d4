import type { z } from 'zod'
import type { farmListInput, farmPage } from '../../domain/farm-view.ts'
import { afterName, cutPage } from '../keyset.ts'
import { visibleFarms } from '../scope/visible.ts'
import type { ServiceContext } from '../service-context.ts'

export async function listFarms(
  { db, actor }: ServiceContext,
  input: z.output<typeof farmListInput>,
): Promise<z.infer<typeof farmPage>> {
  const rows = await db.farm.findMany({
    where: { organizationId: actor.organizationId, AND: [visibleFarms(actor), afterName(input.cursor)] },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: { id: true, name: true, createdAt: true, revision: true },
  })
  return cutPage(rows, input.limit, {
    item: (row) => ({ ...row, createdAt: row.createdAt.toISOString() }),
    key: (row) => [row.name, row.id],
  })
}
