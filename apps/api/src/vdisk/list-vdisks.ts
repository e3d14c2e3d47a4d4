import type { z } from 'zod'
import { visibleVdisks } from '../access/visible.ts'
import { afterName, cutPage, nameContains } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import type { ResolvedVersions } from '../rules/version-access.ts'
import type { vdiskListInput, vdiskPage } from './schema.ts'
import { readResolved } from './version-facts.ts'

export async function listVdisks(
  { db, clock, actor }: ServiceContext,
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
  const resolved = await readResolved(
    db,
    { organizationId: actor.organizationId, vdiskIds: rows.map(({ id }) => id) },
    clock(),
  )
  return cutPage(rows, input.limit, {
    item: ({ _count, versions: [newest], ...row }) => ({
      ...row,
      createdAt: row.createdAt.toISOString(),
      versionCount: _count.versions,
      newestVersion: newest
        ? { ...newest, sizeBytes: Number(newest.sizeBytes), createdAt: newest.createdAt.toISOString() }
        : null,
      bootedVersion: bootedOf(resolved.get(row.id)),
    }),
    key: (row) => [row.name, row.id],
  })
}

function bootedOf(resolved: ResolvedVersions | undefined): { id: string; number: number } | null {
  const version = resolved?.production
  return version ? { id: version.id, number: version.number } : null
}
