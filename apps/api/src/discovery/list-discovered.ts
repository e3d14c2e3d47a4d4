import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleDiscovered } from '../access/visible.ts'
import { escapeLike } from '../context/keyset.ts'
import { listOrder } from '../context/list-order.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { discoveredSelect, discoveredViewOf } from './rows.ts'
import {
  type DiscoveredDeviceView,
  type discoveredGetInput,
  type discoveredListInput,
  type discoveredPage,
  discoveredSort,
  waitingCountMax,
  type waitingCountResult,
} from './schema.ts'

type Input = z.output<typeof discoveredListInput>

export async function listDiscovered(context: ServiceContext, input: Input): Promise<z.infer<typeof discoveredPage>> {
  const { organizationId } = context.actor
  const order = listOrder(discoveredSort, input)
  const rows = await context.db.discoveredDevice.findMany({
    where: {
      organizationId,
      AND: [visibleDiscovered(context.actor), filterOf(input), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: discoveredSelect,
  })
  const taken = await takenHostNames(context, rows)
  return order.page(rows, (row) => discoveredViewOf(row, taken.get(row.siteId) ?? new Set()))
}

/** Throws `not_found`. */
export async function getDiscovered(
  context: ServiceContext,
  { discoveredId }: z.output<typeof discoveredGetInput>,
): Promise<DiscoveredDeviceView> {
  const { organizationId } = context.actor
  const row = await context.db.discoveredDevice.findFirst({
    where: { organizationId, id: discoveredId, AND: [visibleDiscovered(context.actor)] },
    select: discoveredSelect,
  })
  if (!row) throw new AppError('not_found')
  const taken = await takenHostNames(context, [row])
  return discoveredViewOf(row, taken.get(row.siteId) ?? new Set())
}

/** How many wait for a decision, up to a limit. */
export async function countWaiting({ db, actor }: ServiceContext): Promise<z.infer<typeof waitingCountResult>> {
  const rows = await db.discoveredDevice.findMany({
    where: { organizationId: actor.organizationId, ignoredAt: null, AND: [visibleDiscovered(actor)] },
    take: waitingCountMax,
    select: { id: true },
  })
  return { count: rows.length }
}

/** Returns which of the devices' own names belong to registered devices of their site already. */
async function takenHostNames(
  { db, actor }: ServiceContext,
  rows: { siteId: string; hostName: string | null }[],
): Promise<Map<string, Set<string>>> {
  const names = rows.flatMap(({ hostName }) => hostName?.toLowerCase() ?? [])
  const siteIds = [...new Set(rows.map(({ siteId }) => siteId))]
  const devices = await db.device.findMany({
    where: { organizationId: actor.organizationId, siteId: { in: siteIds }, name: { in: names } },
    select: { siteId: true, name: true },
  })
  return new Map(siteIds.map((id) => [id, new Set(devices.flatMap(({ siteId, name }) => (siteId === id ? name : [])))]))
}

function filterOf(input: Input): Prisma.DiscoveredDeviceWhereInput {
  return {
    ignoredAt: input.state === 'waiting' ? null : { not: null },
    ...(input.siteId ? { siteId: input.siteId } : {}),
    ...(input.search ? searchFilter(input.search) : {}),
  }
}

function searchFilter(search: string): Prisma.DiscoveredDeviceWhereInput {
  const mac = { contains: escapeLike(search.toLowerCase().replaceAll('-', ':')) }
  const text = { contains: escapeLike(search), mode: 'insensitive' as const }
  return { OR: [{ mac }, { vendorClass: text }, { userClass: text }, { hostName: text }] }
}
