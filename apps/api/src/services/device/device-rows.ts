import type { Prisma } from '@bootfarm/db'
import type { DeviceSummary } from '../../domain/device-view.ts'
import type { ServiceContext } from '../service-context.ts'

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
  collection: {
    select: {
      name: true,
      vdisk: {
        select: {
          id: true,
          name: true,
          versions: { orderBy: { number: 'desc' }, take: 1, select: { number: true } },
        },
      },
    },
  },
} satisfies Prisma.DeviceSelect
type DeviceSummaryRow = Prisma.DeviceGetPayload<{ select: typeof deviceSummarySelect }>

/** Where a boot came from. */
interface BootOrigin {
  simulated: boolean
  generated: boolean
}

/** The origins of the devices' last boots, by boot id, in one read. */
export async function originsOfLastBoots(
  { db, actor }: ServiceContext,
  rows: Pick<DeviceSummaryRow, 'lastBootId'>[],
): Promise<Map<string, BootOrigin>> {
  const ids = rows.flatMap(({ lastBootId }) => lastBootId ?? [])
  const boots = await db.boot.findMany({
    where: { organizationId: actor.organizationId, id: { in: ids } },
    select: { id: true, simulated: true, generated: true },
  })
  return new Map(boots.map(({ id, simulated, generated }) => [id, { simulated, generated }]))
}

export function deviceSummaryOf(row: DeviceSummaryRow, origins: Map<string, BootOrigin>): DeviceSummary {
  const { vdisk } = row.collection
  const version = vdisk?.versions[0]
  return {
    id: row.id,
    name: row.name,
    mac: row.mac,
    enabled: row.enabled,
    siteId: row.siteId,
    siteName: row.site.name,
    collectionId: row.collectionId,
    collectionName: row.collection.name,
    vdisk: vdisk && version ? { id: vdisk.id, name: vdisk.name, versionNumber: version.number } : null,
    lastBoot:
      row.lastBootId && row.lastBootStartedAt
        ? {
            id: row.lastBootId,
            startedAt: row.lastBootStartedAt.toISOString(),
            outcome: row.lastBootOutcome,
            totalUs: Number(row.lastBootTotalUs ?? 0n),
            ...(origins.get(row.lastBootId) ?? { simulated: false, generated: false }),
          }
        : null,
  }
}
