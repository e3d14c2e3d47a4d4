import type { Prisma } from '@bootfarm/db'
import { type DeviceState, deviceStateOf } from '../../domain/device-state.ts'
import type { DeviceSummary, PowerOrderView } from '../../domain/device-view.ts'
import type { WriteCacheView } from '../../domain/write-cache.ts'
import { writeCacheOfRow } from '../boot/boot-rows.ts'
import { readBootsById } from '../boot/read-boots.ts'
import type { ServiceContext } from '../service-context.ts'

/** An order that is over is shown for this long. */
const powerOrderShownMs = 600_000

const vdiskSelect = {
  select: {
    id: true,
    name: true,
    versions: { orderBy: { number: 'desc' }, take: 1, select: { number: true } },
  },
} satisfies { select: Prisma.VdiskSelect }

export const deviceSummarySelect = (now: Date) =>
  ({
    id: true,
    name: true,
    mac: true,
    enabled: true,
    tags: true,
    revision: true,
    siteId: true,
    collectionId: true,
    lastBootId: true,
    lastBootStartedAt: true,
    lastBootOutcome: true,
    lastBootTotalUs: true,
    site: { select: { name: true } },
    vdisk: vdiskSelect,
    collection: { select: { name: true, vdisk: vdiskSelect } },
    powerOrders: {
      where: { requestedAt: { gt: new Date(now.getTime() - powerOrderShownMs) } },
      orderBy: [{ requestedAt: 'desc' }, { id: 'desc' }],
      take: 1,
      select: { id: true, order: true, requestedAt: true, expiresAt: true, takenAt: true },
    },
  }) satisfies Prisma.DeviceSelect
type DeviceSummaryRow = Prisma.DeviceGetPayload<{ select: ReturnType<typeof deviceSummarySelect> }>

/** What of a device's last boot is not repeated in its own row. */
interface LastBoot {
  simulated: boolean
  generated: boolean
  writeCache: WriteCacheView | null
  reportedAt: string
  deviceState: DeviceState
}

/** The devices' last boots by id, in one read. */
export async function readLastBoots(
  context: ServiceContext,
  rows: Pick<DeviceSummaryRow, 'lastBootId'>[],
): Promise<Map<string, LastBoot>> {
  const ids = rows.flatMap(({ lastBootId }) => lastBootId ?? [])
  const boots = await readBootsById(context, ids)
  const now = context.clock()
  return new Map(
    [...boots.values()].map((boot) => [
      boot.id,
      {
        simulated: boot.simulated,
        generated: boot.generated,
        writeCache: writeCacheOfRow(boot),
        reportedAt: boot.updatedAt.toISOString(),
        deviceState: deviceStateOf(boot, now),
      },
    ]),
  )
}

export function deviceSummaryOf(
  row: DeviceSummaryRow,
  { lastBoots, now }: { lastBoots: Map<string, LastBoot>; now: Date },
): DeviceSummary {
  const vdisk = row.vdisk ?? row.collection.vdisk
  const lastBoot = lastBoots.get(row.lastBootId ?? '')
  const powerOrder = row.powerOrders[0]
  const version = vdisk?.versions[0]
  return {
    id: row.id,
    name: row.name,
    mac: row.mac,
    enabled: row.enabled,
    tags: row.tags,
    revision: row.revision,
    siteId: row.siteId,
    siteName: row.site.name,
    collectionId: row.collectionId,
    collectionName: row.collection.name,
    vdisk: vdisk && version ? { id: vdisk.id, name: vdisk.name, versionNumber: version.number } : null,
    lastBoot:
      row.lastBootId && row.lastBootStartedAt && lastBoot
        ? {
            id: row.lastBootId,
            startedAt: row.lastBootStartedAt.toISOString(),
            outcome: row.lastBootOutcome,
            totalUs: Number(row.lastBootTotalUs ?? 0n),
            simulated: lastBoot.simulated,
            generated: lastBoot.generated,
            writeCache: lastBoot.writeCache,
            reportedAt: lastBoot.reportedAt,
          }
        : null,
    now: lastBoot?.deviceState ?? { state: 'unknown', since: null },
    powerOrder: powerOrder ? powerOrderViewOf(powerOrder, now) : null,
  }
}

function powerOrderViewOf(row: DeviceSummaryRow['powerOrders'][number], now: Date): PowerOrderView {
  const ended = row.expiresAt <= now ? 'expired' : 'waiting'
  return {
    id: row.id,
    order: row.order,
    state: row.takenAt ? 'taken' : ended,
    requestedAt: row.requestedAt.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
    takenAt: row.takenAt?.toISOString() ?? null,
  }
}
