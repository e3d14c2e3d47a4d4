import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleBoots } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { readBootDays, readBootsByStart } from './boots-by-start.ts'
import { bootSummaryOf } from './rows.ts'
import { type bootListInput, type bootPage, bootSort } from './schema.ts'

type Input = z.output<typeof bootListInput>

const originFilters = {
  device: { simulated: false, generated: false },
  simulated: { simulated: true, generated: false },
  generated: { generated: true },
}

export async function listBoots(context: ServiceContext, input: Input): Promise<z.infer<typeof bootPage>> {
  const order = listOrder(bootSort, input)
  const oldestFirst = !order.isDescending
  const [visible, afterLast, days] = await Promise.all([
    visibleBoots(context),
    afterLastBoot(context, input.deviceId),
    readBootDays(context),
  ])
  const last = order.after?.value instanceof Date ? order.after.value : null
  const rows = await readBootsByStart(context, {
    days,
    oldestFirst,
    where: { AND: [visible, filterOf(input), order.where] },
    // An instant later than the cursor's: others of the very same one may still come.
    before: oldestFirst ? afterLast : earliest(last && new Date(last.getTime() + 1), afterLast),
    since: latest(input.since ? new Date(input.since) : null, oldestFirst ? last : null),
    limit: order.take,
  })
  const now = context.clock()
  return order.page(rows, (row) => bootSummaryOf(row, now))
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

function latest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b
  return a > b ? a : b
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
