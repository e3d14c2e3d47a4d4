import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleBoots } from '../access/visible.ts'
import { cutPage, decodeInstantCursor } from '../context/keyset.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { readBootDays, readNewestBoots } from './newest-boots.ts'
import { bootSummaryOf } from './rows.ts'
import type { bootListInput, bootPage } from './schema.ts'

type Input = z.output<typeof bootListInput>

const originFilters = {
  device: { simulated: false, generated: false },
  simulated: { simulated: true, generated: false },
  generated: { generated: true },
}

/** Newest first, by (startedAt, id). */
export async function listBoots(context: ServiceContext, input: Input): Promise<z.infer<typeof bootPage>> {
  const after = decodeInstantCursor(input.cursor)
  const [visible, afterLast, days] = await Promise.all([
    visibleBoots(context),
    afterLastBoot(context, input.deviceId),
    readBootDays(context),
  ])
  const rows = await readNewestBoots(context, {
    days,
    where: { AND: [visible, filterOf(input), afterCursor(after)] },
    // An instant later than the cursor's: others of the very same one may still come.
    before: earliest(after && new Date(after.at.getTime() + 1), afterLast),
    since: input.since ? new Date(input.since) : undefined,
    limit: input.limit + 1,
  })
  const now = context.clock()
  return cutPage(rows, input.limit, {
    item: (row) => bootSummaryOf(row, now),
    key: (row) => [row.startedAt.toISOString(), row.id],
  })
}

/** A device's row has the start of its newest boot, so nothing newer needs to be read. */
async function afterLastBoot({ db, actor }: ServiceContext, deviceId: string | undefined): Promise<Date | null> {
  if (!deviceId) return null
  const device = await db.device.findUnique({
    where: ownRow(actor, deviceId),
    select: { lastBootStartedAt: true },
  })
  return device?.lastBootStartedAt ? new Date(device.lastBootStartedAt.getTime() + 1) : null
}

function earliest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b
  return a < b ? a : b
}

function filterOf(input: Input): Prisma.BootWhereInput {
  return {
    ...(input.outcome ? { outcome: input.outcome === 'booting' ? null : input.outcome } : {}),
    ...(input.deviceId ? { deviceId: input.deviceId } : {}),
    ...(input.siteId ? { siteId: input.siteId } : {}),
    ...(input.edgeId ? { edgeId: input.edgeId } : {}),
    ...(input.origin ? originFilters[input.origin] : {}),
  }
}

function afterCursor(after: { at: Date; id: string } | null): Prisma.BootWhereInput {
  if (!after) return {}
  return { OR: [{ startedAt: { lt: after.at } }, { startedAt: after.at, id: { lt: after.id } }] }
}
