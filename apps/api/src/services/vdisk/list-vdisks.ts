import type { z } from 'zod'
import type { vdiskListInput, vdiskPage } from '../../domain/vdisk-view.ts'
import { afterName, cutPage, nameContains } from '../keyset.ts'
import { visibleVdisks } from '../scope/visible.ts'
import type { ServiceContext } from '../service-context.ts'

export async function listVdisks(
  { db, actor }: ServiceContext,
  input: z.output<typeof vdiskListInput>,
): Promise<z.infer<typeof vdiskPage>> {
  const rows = await db.vdisk.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.farmId ? { farmId: input.farmId } : {}),
      ...nameContains(input.search),
      AND: [visibleVdisks(actor), afterName(input.cursor)],
    },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: {
      id: true,
      farmId: true,
      name: true,
      createdAt: true,
      _count: { select: { versions: true } },
      versions: {
        orderBy: { number: 'desc' },
        take: 1,
        select: { id: true, number: true, sizeBytes: true, createdAt: true },
      },
    },
  })
  return cutPage(rows, input.limit, {
    item: ({ _count, versions: [newest], ...row }) => ({
      ...row,
      createdAt: row.createdAt.toISOString(),
      versionCount: _count.versions,
      newestVersion: newest
        ? { ...newest, sizeBytes: Number(newest.sizeBytes), createdAt: newest.createdAt.toISOString() }
        : null,
    }),
    key: (row) => [row.name, row.id],
  })
}
