import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import type { DeviceSummary, deviceListInput, devicePage } from '../../domain/device-view.ts'
import { afterName, cutPage } from '../keyset.ts'
import type { ServiceContext } from '../service-context.ts'

type Input = z.output<typeof deviceListInput>

export const deviceSummarySelect = {
  id: true,
  name: true,
  mac: true,
  enabled: true,
  siteId: true,
  collectionId: true,
  lastBootId: true,
  lastBootStartedAt: true,
  lastBootOutcome: true,
  lastBootTotalUs: true,
  site: { select: { name: true } },
  collection: { select: { name: true } },
} satisfies Prisma.DeviceSelect
type DeviceSummaryRow = Prisma.DeviceGetPayload<{ select: typeof deviceSummarySelect }>

export async function listDevices(
  { db, actor }: ServiceContext,
  input: Input,
): Promise<z.infer<typeof devicePage>> {
  const rows = await db.device.findMany({
    where: { organizationId: actor.organizationId, AND: [filterOf(input), afterName(input.cursor)] },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: input.limit + 1,
    select: deviceSummarySelect,
  })
  return cutPage(rows, input.limit, { item: deviceSummaryOf, key: (row) => [row.name, row.id] })
}

export function deviceSummaryOf(row: DeviceSummaryRow): DeviceSummary {
  return {
    id: row.id,
    name: row.name,
    mac: row.mac,
    enabled: row.enabled,
    siteId: row.siteId,
    siteName: row.site.name,
    collectionId: row.collectionId,
    collectionName: row.collection.name,
    lastBoot:
      row.lastBootId && row.lastBootStartedAt
        ? {
            id: row.lastBootId,
            startedAt: row.lastBootStartedAt.toISOString(),
            outcome: row.lastBootOutcome,
            totalUs: Number(row.lastBootTotalUs ?? 0n),
          }
        : null,
  }
}

function filterOf(input: Input): Prisma.DeviceWhereInput {
  return {
    ...(input.siteId ? { siteId: input.siteId } : {}),
    ...(input.collectionId ? { collectionId: input.collectionId } : {}),
    ...lastOutcomeFilter(input.lastOutcome),
    ...(input.search ? searchFilter(input.search) : {}),
  }
}

function lastOutcomeFilter(lastOutcome: Input['lastOutcome']): Prisma.DeviceWhereInput {
  if (!lastOutcome) return {}
  if (lastOutcome === 'never') return { lastBootId: null }
  if (lastOutcome === 'booting') return { lastBootId: { not: null }, lastBootOutcome: null }
  return { lastBootOutcome: lastOutcome }
}

function searchFilter(search: string): Prisma.DeviceWhereInput {
  const mac = search.toLowerCase().replaceAll('-', ':')
  return {
    OR: [
      { name: { contains: escapeLike(search), mode: 'insensitive' } },
      { mac: { contains: escapeLike(mac) } },
    ],
  }
}

/** Prisma hands `contains` to LIKE as it is, wildcards included. */
function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}
