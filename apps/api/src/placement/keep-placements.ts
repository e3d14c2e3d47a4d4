import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import { type DbOrTransaction, lockRow, type PlatformContext } from '../context/service-context.ts'
import type { Objects } from '../difference/public.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'
import { activeStates } from '../store/public.ts'
import { planTransfers } from './plan-transfers.ts'
import { notNeededText, readFacts } from './read-facts.ts'
import type { FetchOrder, PackOrder, TransferPlan } from './transfer-facts.ts'

const keeperName = 'placement of versions'

/**
 * Orders what brings versions to the edges that are to hold them: packs and fetches. Repeating it does no harm; two API
 * processes wait for each other at each vDisk.
 */
export async function keepPlacements({ db, clock, objects }: PlatformContext & { objects: Objects }): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_copies() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      const vdiskIds = await inOrganization(db, organizationId, (tenant) => unsettledVdisks(tenant, organizationId))
      for (const vdiskId of vdiskIds)
        await inOrganization(db, organizationId, (tenant) =>
          keepVdisk(tenant, { organizationId, vdiskId }, { now: clock(), hasObjects: objects.areOpen }),
        )
    },
    rows.map(({ id }) => id),
  )
}

/** vDisks of which an edge lacks a version that another one has, or with transfers. */
async function unsettledVdisks(db: DbOrTransaction, organizationId: string): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    select vdisk.id::text from vdisk where vdisk.organization_id = ${organizationId}::uuid and (
      exists (select from store_job as job where job.organization_id = vdisk.organization_id and job.vdisk_id = vdisk.id
        and job.kind::text in ('pack', 'fetch') and job.state in ('queued', 'running'))
      or exists (select from difference where difference.organization_id = vdisk.organization_id
        and difference.vdisk_id = vdisk.id)
      or exists (select from vdisk_version as version, edge join site on site.organization_id = edge.organization_id
          and site.id = edge.site_id
        where version.organization_id = vdisk.organization_id and version.vdisk_id = vdisk.id
          and version.sealed_at is not null and version.manifest_root is not null and version.deletion_id is null
          and not version.is_blank
          and edge.organization_id = vdisk.organization_id and edge.revoked_at is null and site.farm_id = vdisk.farm_id
          and exists (select from edge_version as stored where stored.organization_id = version.organization_id
            and stored.version_id = version.id and stored.state = 'present')
          and not exists (select from edge_version as stored where stored.organization_id = version.organization_id
            and stored.version_id = version.id and stored.edge_id = edge.id and stored.state = 'present')))
    order by vdisk.id`
  return rows.map(({ id }) => id)
}

interface VdiskKey {
  organizationId: string
  vdiskId: string
}

/** In one transaction, which holds the vDisk, then the edges that get something to do: in the order of all others. */
export async function keepVdisk(
  db: DbOrTransaction,
  key: VdiskKey,
  { now, hasObjects }: { now: Date; hasObjects: boolean },
): Promise<void> {
  const { organizationId, vdiskId } = key
  await lockRow(db, 'vdisk', { organizationId, id: vdiskId, strength: 'no key update' })
  const facts = await readFacts(db, key, { now, hasObjects })
  if (!facts) return
  const plan = planTransfers(facts)
  await endJobs(db, key, { plan, now })
  for (const { jobId, rateBytesPerSecond } of plan.rates)
    await db.storeJob.updateMany({
      where: { organizationId, id: jobId, state: activeStates },
      data: { rateBytesPerSecond },
    })
  const orders = [...plan.packs, ...plan.fetches]
  const edgeIds = [...new Set(orders.map(({ edgeId }) => edgeId))].sort()
  for (const id of edgeIds) await lockRow(db, 'edge', { organizationId, id, strength: 'no key update' })
  for (const order of plan.packs) await orderPack(db, key, { order, now })
  for (const order of plan.fetches) await orderFetch(db, key, { order, now })
  await noteNeed(db, key, { plan, now })
}

async function endJobs(db: DbOrTransaction, key: VdiskKey, { plan, now }: { plan: TransferPlan; now: Date }) {
  for (const id of plan.cancelled)
    await db.storeJob.updateMany({
      where: { organizationId: key.organizationId, id, state: activeStates },
      data: { state: 'cancelled', endedAt: now, message: notNeededText },
    })
}

async function orderPack(db: DbOrTransaction, key: VdiskKey, { order, now }: { order: PackOrder; now: Date }) {
  const { versionId, baseVersionId } = order
  const differenceId =
    order.differenceId ??
    (await db.difference.create({ data: { ...key, versionId, baseVersionId, createdAt: now, neededAt: now } })).id
  const { edgeId, toControlPlane, rateBytesPerSecond } = order
  const what = { versionId, baseVersionId, differenceId, toControlPlane, rateBytesPerSecond }
  await createJob(db, key, { kind: 'pack', edgeId, ...what, now })
}

async function orderFetch(db: DbOrTransaction, key: VdiskKey, { order, now }: { order: FetchOrder; now: Date }) {
  const { edgeId, versionId, difference, sourceEdgeIds, fromControlPlane, rateBytesPerSecond } = order
  await createJob(db, key, {
    kind: 'fetch',
    edgeId,
    versionId,
    now,
    differenceId: difference.id,
    baseVersionId: difference.baseVersionId,
    differenceSizeBytes: difference.sizeBytes,
    differenceListSha256: difference.listSha256,
    sourceEdgeIds,
    fromControlPlane,
    rateBytesPerSecond,
  })
}

interface NewJob {
  kind: 'pack' | 'fetch'
  edgeId: string
  versionId: string
  differenceId: string
  baseVersionId: string | null
  toControlPlane?: boolean
  differenceSizeBytes?: bigint | null
  differenceListSha256?: string | null
  sourceEdgeIds?: string[]
  fromControlPlane?: boolean
  rateBytesPerSecond?: number | null
  now: Date
}

async function createJob(db: DbOrTransaction, { organizationId, vdiskId }: VdiskKey, { now, ...job }: NewJob) {
  const { id, edge } = await db.storeJob.create({
    data: { organizationId, vdiskId, ...job, askedAt: now, askedByName: keeperName },
    select: { id: true, edge: { select: { name: true, siteId: true, site: { select: { farmId: true } } } } },
  })
  const { kind, edgeId, versionId, baseVersionId, fromControlPlane = false, sourceEdgeIds = [] } = job
  await recordDoings({ db, now }, jobDoer(organizationId, keeperName), [
    {
      action: `store_job.${kind}`,
      kind: 'store_job',
      id,
      name: `${kind} on ${edge.name}`,
      place: { farmId: edge.site.farmId, siteId: edge.siteId, collectionId: null },
      before: null,
      after: { kind, edge: edge.name, edgeId, versionId, baseVersionId, fromControlPlane, sourceEdgeIds },
    },
  ])
}

/** Differences of versions that an edge lacks are kept; and no edge serves one whose version it has lost. */
async function noteNeed(db: DbOrTransaction, key: VdiskKey, { plan, now }: { plan: TransferPlan; now: Date }) {
  const { organizationId, vdiskId } = key
  await db.difference.updateMany({
    where: { organizationId, vdiskId, versionId: { in: [...plan.lacking] } },
    data: { neededAt: now },
  })
  await db.$executeRaw`
    delete from edge_difference as kept using difference
    where kept.organization_id = ${organizationId}::uuid and difference.organization_id = kept.organization_id
      and difference.id = kept.difference_id and difference.vdisk_id = ${vdiskId}::uuid
      and exists (select from edge where edge.organization_id = kept.organization_id and edge.id = kept.edge_id
        and (edge.revoked_at is not null or edge.store_reported_at > kept.kept_since))
      and not exists (select from edge_version as stored where stored.organization_id = kept.organization_id
        and stored.edge_id = kept.edge_id and stored.version_id = difference.version_id and stored.state = 'present')`
}
