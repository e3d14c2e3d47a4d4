import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleDevices } from '../access/visible.ts'
import { escapeLike } from '../context/keyset.ts'
import { listOrder, readParts } from '../context/list-order.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { keyAlarms } from '../rules/device/device-key.ts'
import { writeCacheCriticalPercent, writeCacheWarningPercent } from '../rules/device/write-cache.ts'
import { deviceSummaryOf, deviceSummarySelect, nameDevices } from './rows.ts'
import { type deviceListInput, type devicePage, deviceSort } from './schema.ts'

type Input = z.output<typeof deviceListInput>
type DeviceFilter = Omit<Input, 'cursor' | 'limit'>

const writeCachePercentMin = {
  warning: writeCacheWarningPercent,
  critical: writeCacheCriticalPercent,
  full: 100,
}

export async function listDevices(
  context: Pick<ServiceContext, 'db' | 'clock' | 'actor'>,
  input: Input,
): Promise<z.infer<typeof devicePage>> {
  const { db, clock, actor } = context
  const now = clock()
  const order = listOrder(deviceSort, input)
  const filters = [visibleDevices(actor), filterOf(input)]
  const rows = await readParts(order, (where, take) =>
    db.device.findMany({
      where: { organizationId: actor.organizationId, AND: [...filters, where] },
      orderBy: order.orderBy,
      take,
      select: deviceSummarySelect,
    }),
  )
  const names = await nameDevices(context, rows)
  return order.page(rows, (row) => deviceSummaryOf(row, { names, now }))
}

export function filterOf(input: DeviceFilter): Prisma.DeviceWhereInput {
  return {
    ...(input.farmId ? { site: { farmId: input.farmId } } : {}),
    ...(input.siteId ? { siteId: input.siteId } : {}),
    ...(input.collectionId ? { collectionId: input.collectionId } : {}),
    ...(input.tag ? { tags: { has: input.tag } } : {}),
    ...(input.deviceType ? { deviceType: input.deviceType } : {}),
    ...(input.enabled === undefined ? {} : { enabled: input.enabled }),
    ...lastOutcomeFilter(input.lastOutcome),
    ...keyFilter(input.key),
    ...(input.waitsFor ? { lastBootLost: true } : {}),
    ...(input.writeCache ? { lastBootWriteCachePercent: { gte: writeCachePercentMin[input.writeCache] } } : {}),
    ...(input.search ? searchFilter(input.search) : {}),
  }
}

function lastOutcomeFilter(lastOutcome: DeviceFilter['lastOutcome']): Prisma.DeviceWhereInput {
  if (!lastOutcome) return {}
  if (lastOutcome === 'never') return { lastBootId: null }
  if (lastOutcome === 'booting') return { lastBootId: { not: null }, lastBootOutcome: null }
  return { lastBootOutcome: lastOutcome }
}

function keyFilter(key: DeviceFilter['key']): Prisma.DeviceWhereInput {
  if (!key) return {}
  if (key === 'alarm') return { keyLabel: { in: [...keyAlarms] } }
  return { keyLabel: key === 'unjudged' ? null : key }
}

function searchFilter(search: string): Prisma.DeviceWhereInput {
  const mac = search.toLowerCase().replaceAll('-', ':')
  return {
    OR: [{ name: { contains: escapeLike(search), mode: 'insensitive' } }, { mac: { contains: escapeLike(mac) } }],
  }
}
