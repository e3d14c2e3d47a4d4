import type { DbTransaction } from '@bootfarm/db'
import type { BootReport, ReceivedReport, Report } from '@bootfarm/proto/uplink'
import { readBootDays, readBootsByStart } from '../../boot/boots-by-start.ts'
import { daysOf } from '../../boot/read-boots.ts'
import { writeCacheOfRow } from '../../boot/rows.ts'
import { type AuthenticatedEdge, ownRow } from '../../context/service-context.ts'
import { RollupChanges } from '../../rules/boot-rollup.ts'
import { untieBoots } from '../../schedule/move-run-devices.ts'
import { readKnownBoots } from './known-boots.ts'
import { writeRollups } from './write-rollups.ts'

type Withdrawal = Extract<Report, { type: 'withdrawn' }>

/** Longer than the time between an edge's reports of one boot when they arrive. */
const rememberedMs = 7 * 86_400_000

/**
 * Returns the boots of these reports that their edge has not withdrawn, in this batch or before: reports after a
 * withdrawal do not count.
 */
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
  const known = await transaction.$queryRaw<{ id: string }[]>`
    select boot_id::text as id from withdrawn_boot where organization_id = ${organizationId}::uuid
      and edge_id = ${edgeId}::uuid and boot_id = any(${boots.map(({ id }) => id)}::uuid[])`
  const withdrawnBefore = new Set(known.map(({ id }) => id))
  return boots.filter(({ id }) => !withdrawnBefore.has(id))
}

/**
 * Deletes boots that failed over to another edge, unless they became ready here; only those of the reporting edge. The
 * newest remaining boot becomes the device's last boot.
 * @returns their ids
 */
export async function withdrawBoots(
  transaction: DbTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { withdrawals, now }: { withdrawals: Withdrawal[]; now: Date },
): Promise<string[]> {
  const byBootId = new Map(withdrawals.map((withdrawal) => [withdrawal.bootId, withdrawal]))
  const known = await readKnownBoots(transaction, organizationId, [...byBootId.keys()])
  for (const [id, boot] of known)
    if (boot === null || boot.outcome === 'ready' || boot.edgeId !== edgeId) byBootId.delete(id)
  const bootIds = [...byBootId.keys()]
  if (bootIds.length === 0) return []
  await transaction.withdrawnBoot.deleteMany({
    where: { organizationId, edgeId, withdrawnAt: { lt: new Date(now.getTime() - rememberedMs) } },
  })
  await transaction.withdrawnBoot.createMany({
    data: [...byBootId.values()].map(({ bootId, toEdgeId }) => ({
      organizationId,
      edgeId,
      bootId,
      toEdgeId: toEdgeId ?? null,
      withdrawnAt: now,
      change: 0,
    })),
    skipDuplicates: true,
  })
  await transaction.powerOrder.updateMany({
    where: { organizationId, takenBootId: { in: bootIds } },
    data: { takenBootId: null },
  })
  await untieBoots(transaction, organizationId, bootIds)
  const gone = bootIds.flatMap((id) => known.get(id) ?? [])
  const days = daysOf(gone)
  await transaction.boot.deleteMany({
    where: { organizationId, edgeId, id: { in: bootIds }, receivedOn: { in: days } },
  })
  await transaction.bootDetail.deleteMany({
    where: { organizationId, bootId: { in: gone.map(({ id }) => id) }, receivedOn: { in: days } },
  })
  await transaction.bootKey.deleteMany({
    where: { organizationId, bootId: { in: gone.map(({ id }) => id) } },
  })
  const changes = new RollupChanges(now)
  for (const boot of gone) changes.count(boot, -1)
  await writeRollups(transaction, organizationId, changes)
  await resetLastBoots(transaction, organizationId, bootIds)
  return bootIds
}

/** Returns the device's newest remaining boot. */
async function resetLastBoots(transaction: DbTransaction, organizationId: string, bootIds: string[]): Promise<void> {
  const devices = await transaction.device.findMany({
    where: { organizationId, lastBootId: { in: bootIds } },
    select: { id: true },
  })
  const context = { db: transaction, actor: { organizationId } }
  const days = devices.length === 0 ? [] : await readBootDays(context)
  for (const { id } of devices) {
    const [newest] = await readBootsByStart(context, { days, where: { deviceId: id }, before: null, limit: 1 })
    const cache = newest && writeCacheOfRow(newest)
    await transaction.device.update({
      where: ownRow({ organizationId }, id),
      data: {
        lastBootId: newest?.id ?? null,
        lastBootStartedAt: newest?.startedAt ?? null,
        lastBootOutcome: newest?.outcome ?? null,
        lastBootTotalUs: newest?.totalUs ?? null,
        lastBootWriteCachePercent: cache?.percent ?? null,
      },
      select: { id: true },
    })
    const { id: bootId = null, vdiskId = null, versionId = null } = newest ?? {}
    await transaction.$executeRaw`update device set runs_boot_id = ${bootId}::uuid, runs_vdisk_id = ${vdiskId}::uuid,
      runs_version_id = ${versionId}::uuid where organization_id = ${organizationId}::uuid and id = ${id}::uuid`
  }
}
