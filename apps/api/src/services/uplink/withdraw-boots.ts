import type { DbTransaction } from '@bootfarm/db'
import type { BootReport, ReceivedReport, Report } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from './authenticate-edge.ts'
import { untieBoots } from './move-run-devices.ts'
import { advanceFeed } from './write-boots.ts'

export type Withdrawal = Extract<Report, { type: 'withdrawn' }>

/** Longer than an edge's reports of one boot lie apart once they arrive. */
const rememberedMs = 7 * 86_400_000

/** Boots of these reports that their edge has not withdrawn, in this batch or before: what comes after a withdrawal counts no more. */
export async function readBoots(
  transaction: DbTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  reports: ReceivedReport[],
): Promise<BootReport[]> {
  const withdrawnHere = new Set<string>()
  const boots: BootReport[] = []
  for (const report of reports) {
    if (report.type === 'withdrawn') withdrawnHere.add(report.bootId)
    if (report.type === 'boot' && !withdrawnHere.has(report.boot.id)) boots.push(report.boot)
  }
  if (boots.length === 0) return []
  const known = await transaction.withdrawnBoot.findMany({
    where: { organizationId, edgeId, bootId: { in: boots.map(({ id }) => id) } },
    select: { bootId: true },
  })
  const withdrawnBefore = new Set(known.map(({ bootId }) => bootId))
  return boots.filter(({ id }) => !withdrawnBefore.has(id))
}

/**
 * Forgets boots that went on at another edge, unless they got ready here; only those of the edge that says so. The device's last boot
 * is the newest one that is left.
 */
export async function withdrawBoots(
  transaction: DbTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { withdrawals, now }: { withdrawals: Withdrawal[]; now: Date },
): Promise<void> {
  const byBootId = new Map(withdrawals.map((withdrawal) => [withdrawal.bootId, withdrawal]))
  const kept = await transaction.boot.findMany({
    where: {
      organizationId,
      id: { in: [...byBootId.keys()] },
      OR: [{ outcome: 'ready' }, { edgeId: { not: edgeId } }],
    },
    select: { id: true },
  })
  for (const { id } of kept) byBootId.delete(id)
  const bootIds = [...byBootId.keys()]
  if (bootIds.length === 0) return
  const lastChange = await advanceFeed(transaction, organizationId, bootIds.length)
  await transaction.withdrawnBoot.deleteMany({
    where: { organizationId, edgeId, withdrawnAt: { lt: new Date(now.getTime() - rememberedMs) } },
  })
  await transaction.withdrawnBoot.createMany({
    data: [...byBootId.values()].map(({ bootId, toEdgeId }, index) => ({
      ...{ organizationId, edgeId, bootId, toEdgeId: toEdgeId ?? null, withdrawnAt: now },
      change: lastChange - bootIds.length + index + 1,
    })),
    skipDuplicates: true,
  })
  await transaction.powerOrder.updateMany({
    where: { organizationId, takenBootId: { in: bootIds } },
    data: { takenBootId: null },
  })
  await untieBoots(transaction, organizationId, bootIds)
  await transaction.boot.deleteMany({ where: { organizationId, edgeId, id: { in: bootIds } } })
  await resetLastBoots(transaction, organizationId, bootIds)
}

async function resetLastBoots(
  transaction: DbTransaction,
  organizationId: string,
  bootIds: string[],
): Promise<void> {
  await transaction.$executeRaw`
    update device set last_boot_id = newest.id, last_boot_started_at = newest.started_at, last_boot_outcome = newest.outcome,
      last_boot_total_us = newest.total_us, last_boot_write_cache_percent = floor(
        least(newest.write_cache_used_bytes, newest.write_cache_size_bytes) * 100.0 / newest.write_cache_size_bytes
      )::integer
    from device as forgetful left join lateral (
      select * from boot where boot.organization_id = forgetful.organization_id and boot.device_id = forgetful.id
      order by started_at desc, id desc limit 1
    ) as newest on true
    where forgetful.organization_id = ${organizationId}::uuid and forgetful.last_boot_id = any(${bootIds}::uuid[])
      and device.organization_id = forgetful.organization_id and device.id = forgetful.id`
}
