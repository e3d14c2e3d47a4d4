import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import type { bootListInput, bootPage } from '../../domain/boot-view.ts'
import { cutPage, decodeInstantCursor } from '../keyset.ts'
import { visibleBoots } from '../scope/visible.ts'
import type { ServiceContext } from '../service-context.ts'
import { bootSummaryOf, bootSummarySelect } from './boot-rows.ts'

type Input = z.output<typeof bootListInput>

const originFilters = {
  device: { simulated: false, generated: false },
  simulated: { simulated: true, generated: false },
  generated: { generated: true },
}

/** Newest first, by (startedAt, id). */
export async function listBoots(
  { db, clock, actor }: ServiceContext,
  input: Input,
): Promise<z.infer<typeof bootPage>> {
  const rows = await db.boot.findMany({
    where: {
      organizationId: actor.organizationId,
      AND: [visibleBoots(actor), filterOf(input), afterCursor(input.cursor)],
    },
    orderBy: [{ startedAt: 'desc' }, { id: 'desc' }],
    take: input.limit + 1,
    select: bootSummarySelect,
  })
  const now = clock()
  return cutPage(rows, input.limit, {
    item: (row) => bootSummaryOf(row, now),
    key: (row) => [row.startedAt.toISOString(), row.id],
  })
}

function filterOf(input: Input): Prisma.BootWhereInput {
  return {
    ...(input.outcome ? { outcome: input.outcome === 'booting' ? null : input.outcome } : {}),
    ...(input.deviceId ? { deviceId: input.deviceId } : {}),
    ...(input.siteId ? { siteId: input.siteId } : {}),
    ...(input.edgeId ? { edgeId: input.edgeId } : {}),
    ...(input.origin ? originFilters[input.origin] : {}),
    ...(input.since ? { startedAt: { gte: new Date(input.since) } } : {}),
  }
}

function afterCursor(cursor: Input['cursor']): Prisma.BootWhereInput {
  const after = decodeInstantCursor(cursor)
  if (!after) return {}
  return { OR: [{ startedAt: { lt: after.at } }, { startedAt: after.at, id: { lt: after.id } }] }
}
