import type { StoreAnswer, StoreJobReport, StoreMessage } from '@bootfarm/proto/uplink'
import {
  type AuthenticatedEdge,
  type DbOrTransaction,
  type SystemContext,
  withTrash,
} from '../../context/service-context.ts'
import { dropOldImages, type InventoryPage, keepImages } from '../reports/keep-images.ts'
import { applyStoreJobs, settledJobs } from './apply-store-jobs.ts'
import { noteLostVersions, readLostVersions } from './note-lost-versions.ts'

/**
 * Stores an edge's message about its store, unless a message with a later (epoch, counter) is known: a replay changes
 * nothing.
 * @returns the jobs whose result is stored, or that are unknown
 */
export async function takeStoreMessage(
  context: SystemContext,
  edge: AuthenticatedEdge,
  { store, inventory, jobs }: StoreMessage,
): Promise<StoreAnswer> {
  const { db, clock } = context
  const { organizationId, edgeId, bootEpoch, counter } = edge
  const now = clock()
  await lockVdisks(db, edge, jobs)
  const taken = await db.$executeRaw`
    update edge set store_epoch = ${bootEpoch}, store_counter = ${counter}, store_facts = coalesce(${store ? JSON.stringify(store) : null}::jsonb, store_facts)
    where organization_id = ${organizationId}::uuid and id = ${edgeId}::uuid and (store_epoch, store_counter) < (${bootEpoch}, ${counter})`
  if (taken > 0) {
    if (inventory) await keepInventory(db, edge, { ...inventory, now })
    await applyStoreJobs(context, edge, jobs)
  }
  return { settledJobs: await settledJobs(db, edge, jobs) }
}

/** Locks vDisks before the edge's row, in the same order as requests to a store, so that no deadlock can occur. */
async function lockVdisks(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  jobs: StoreJobReport[],
): Promise<void> {
  if (jobs.length === 0) return
  await db.$queryRaw`select vdisk.id from vdisk where vdisk.organization_id = ${organizationId}::uuid and vdisk.id in (
      select job.vdisk_id from store_job as job where job.organization_id = ${organizationId}::uuid and job.edge_id = ${edgeId}::uuid
        and job.id = any(${jobs.map(({ id }) => id)}::uuid[]))
    order by vdisk.id for no key update`
}

/**
 * Keeps one row for each version that is known here, including those in the trash, and one for each image that is no
 * version of any vDisk.
 */
async function keepInventory(db: DbOrTransaction, edge: AuthenticatedEdge, page: InventoryPage): Promise<void> {
  const { organizationId, edgeId } = edge
  const { scan, isLast, versions, now } = page
  const rows = versions.map((version) => ({
    version_id: version.versionId,
    state: version.state,
    root: version.root ? Buffer.from(version.root, 'base64').toString('hex') : null,
    is_layer: version.isLayer ?? false,
    is_written: version.isWritten ?? null,
    own_bytes: version.ownBytes,
    shared_bytes: version.sharedBytes,
    reclaimable_bytes: version.reclaimableBytes,
    boot_profiles: version.bootProfiles?.length ? version.bootProfiles : null,
    checked_at: version.checkedUnixMs === undefined ? null : new Date(version.checkedUnixMs).toISOString(),
  }))
  let lost: Awaited<ReturnType<typeof readLostVersions>> = []
  await withTrash(db, async () => {
    // A root other than the version's means other bytes under its name.
    await db.$executeRaw`
      insert into edge_version (organization_id, edge_id, version_id, state, root, is_layer, is_written, own_bytes, shared_bytes,
        reclaimable_bytes, boot_profiles, checked_at, reported_at, scan)
      select distinct on (row.version_id) ${organizationId}::uuid, ${edgeId}::uuid, row.version_id,
        case when row.state = 'present' and decode(row.root, 'hex') <> version.manifest_root then 'damaged' else row.state end,
        decode(row.root, 'hex'), row.is_layer, row.is_written, row.own_bytes, row.shared_bytes, row.reclaimable_bytes,
        row.boot_profiles, row.checked_at, ${now}, ${scan}
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (version_id uuid, state "EdgeVersionState", root text,
          is_layer boolean, is_written boolean, own_bytes bigint, shared_bytes bigint, reclaimable_bytes bigint, boot_profiles jsonb, checked_at timestamptz)
        join vdisk_version as version on version.organization_id = ${organizationId}::uuid and version.id = row.version_id
      order by row.version_id
      on conflict (organization_id, edge_id, version_id) do update set state = excluded.state, root = excluded.root,
        is_layer = excluded.is_layer, is_written = excluded.is_written, own_bytes = excluded.own_bytes, shared_bytes = excluded.shared_bytes,
        reclaimable_bytes = excluded.reclaimable_bytes, boot_profiles = excluded.boot_profiles, checked_at = excluded.checked_at, reported_at = excluded.reported_at,
        scan = excluded.scan`
    await keepImages(db, edge, page)
    if (!isLast) return
    await dropOldImages(db, edge, scan)
    lost = await readLostVersions(db, edge, scan)
    await db.$executeRaw`
      update edge_version set state = 'missing', own_bytes = 0, shared_bytes = 0, reclaimable_bytes = 0, boot_profiles = null, reported_at = ${now}, scan = ${scan}
      where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid and scan <> ${scan}`
    await db.$executeRaw`update edge set store_reported_at = ${now}
      where organization_id = ${organizationId}::uuid and id = ${edgeId}::uuid`
  })
  await noteLostVersions({ db, now }, edge, lost)
}
