import type { StoreAnswer, StoredVersion, StoreJobReport, StoreMessage } from '@bootfarm/proto/uplink'
import type { DbOrTransaction, SystemContext } from '../service-context.ts'
import { withTrash } from '../trash/with-trash.ts'
import { applyStoreJobs, settledJobs } from './apply-store-jobs.ts'
import type { AuthenticatedEdge } from './authenticate-edge.ts'

/**
 * Keeps what an edge says of its store, unless a message of a later (epoch, counter) is known: a replayed one changes nothing.
 * @returns the jobs whose end is kept, or that nobody knows
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
    update edge set store_epoch = ${bootEpoch}, store_counter = ${counter}, store_facts = ${JSON.stringify(store)}::jsonb
    where organization_id = ${organizationId}::uuid and id = ${edgeId}::uuid and (store_epoch, store_counter) < (${bootEpoch}, ${counter})`
  if (taken > 0) {
    if (inventory) await keepInventory(db, edge, { ...inventory, now })
    await applyStoreJobs(context, edge, jobs)
  }
  return { settledJobs: await settledJobs(db, edge, jobs) }
}

/** Before the edge's row, as whoever asks a store for something does: nobody waits for somebody who waits for him. */
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

interface Page {
  scan: number
  isLast: boolean
  versions: StoredVersion[]
  now: Date
}

/** One row for each version that is known here, one in the trash too; what its store has besides is the edge's own business. */
async function keepInventory(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { scan, isLast, versions, now }: Page,
): Promise<void> {
  const rows = versions.map((version) => ({
    version_id: version.versionId,
    state: version.state,
    root: version.root ? Buffer.from(version.root, 'base64').toString('hex') : null,
    is_layer: version.isLayer ?? false,
    own_bytes: version.ownBytes,
    shared_bytes: version.sharedBytes,
    reclaimable_bytes: version.reclaimableBytes,
    checked_at: version.checkedUnixMs === undefined ? null : new Date(version.checkedUnixMs).toISOString(),
  }))
  await withTrash(db, async () => {
    // Another root than the version's is other bytes under its name.
    await db.$executeRaw`
      insert into edge_version (organization_id, edge_id, version_id, state, root, is_layer, own_bytes, shared_bytes, reclaimable_bytes,
        checked_at, reported_at, scan)
      select distinct on (row.version_id) ${organizationId}::uuid, ${edgeId}::uuid, row.version_id,
        case when row.state = 'present' and decode(row.root, 'hex') <> version.manifest_root then 'damaged' else row.state end,
        decode(row.root, 'hex'), row.is_layer, row.own_bytes, row.shared_bytes, row.reclaimable_bytes, row.checked_at, ${now}, ${scan}
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (version_id uuid, state "EdgeVersionState", root text,
          is_layer boolean, own_bytes bigint, shared_bytes bigint, reclaimable_bytes bigint, checked_at timestamptz)
        join vdisk_version as version on version.organization_id = ${organizationId}::uuid and version.id = row.version_id
      order by row.version_id
      on conflict (organization_id, edge_id, version_id) do update set state = excluded.state, root = excluded.root,
        is_layer = excluded.is_layer, own_bytes = excluded.own_bytes, shared_bytes = excluded.shared_bytes,
        reclaimable_bytes = excluded.reclaimable_bytes, checked_at = excluded.checked_at, reported_at = excluded.reported_at,
        scan = excluded.scan`
    if (!isLast) return
    await db.$executeRaw`
      update edge_version set state = 'missing', own_bytes = 0, shared_bytes = 0, reclaimable_bytes = 0, reported_at = ${now}, scan = ${scan}
      where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid and scan <> ${scan}`
    await db.$executeRaw`update edge set store_reported_at = ${now}
      where organization_id = ${organizationId}::uuid and id = ${edgeId}::uuid`
  })
}
