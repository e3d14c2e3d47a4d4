import type { StoredVersion } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, DbOrTransaction } from '../../context/service-context.ts'

export interface InventoryPage {
  scan: number
  isLast: boolean
  versions: StoredVersion[]
  now: Date
}

/** For one edge: as many as its inventory names. */
const imagesMax = 2048

/**
 * Keeps the images in an edge's store that are no version of any vDisk here. An image stays while it is being adopted,
 * until it is a version: an adoption may fail. The caller can see the trash.
 */
export async function keepImages(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { scan, versions, now }: InventoryPage,
): Promise<void> {
  const rows = versions.flatMap(({ versionId, isLayer, state, root, image, ...sizes }) =>
    isLayer
      ? []
      : {
          version_id: versionId,
          state,
          root: root ? Buffer.from(root, 'base64').toString('hex') : null,
          name: image?.name ?? '',
          size_bytes: image?.sizeBytes ?? null,
          made_at: image ? new Date(image.createdUnixMs).toISOString() : null,
          has_kernel: image?.hasKernel ?? false,
          made_for_id: image?.organizationId ?? null,
          parent_version_id: image?.parentVersionId ?? null,
          own_bytes: sizes.ownBytes,
          shared_bytes: sizes.sharedBytes,
          reclaimable_bytes: sizes.reclaimableBytes,
        },
  )
  if (rows.length === 0) return
  await db.$executeRaw`
    insert into edge_image (organization_id, edge_id, version_id, state, root, name, size_bytes, made_at, has_kernel, made_for_id,
      parent_version_id, own_bytes, shared_bytes, reclaimable_bytes, reported_at, scan)
    select distinct on (row.version_id) ${organizationId}::uuid, ${edgeId}::uuid, row.version_id, row.state, decode(row.root, 'hex'), row.name,
      row.size_bytes, row.made_at, row.has_kernel, row.made_for_id, row.parent_version_id, row.own_bytes, row.shared_bytes,
      row.reclaimable_bytes, ${now}, ${scan}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (version_id uuid, state "EdgeVersionState", root text, name text,
        size_bytes bigint, made_at timestamptz, has_kernel boolean, made_for_id uuid, parent_version_id uuid, own_bytes bigint,
        shared_bytes bigint, reclaimable_bytes bigint)
    where not exists (select from vdisk_version as version where version.organization_id = ${organizationId}::uuid
        and version.id = row.version_id and version.sealed_at is not null)
      and (select count(*) from edge_image as known
        where known.organization_id = ${organizationId}::uuid and known.edge_id = ${edgeId}::uuid and known.version_id <> row.version_id) < ${imagesMax}
    order by row.version_id
    on conflict (organization_id, edge_id, version_id) do update set state = excluded.state, root = excluded.root, name = excluded.name,
      size_bytes = excluded.size_bytes, made_at = excluded.made_at, has_kernel = excluded.has_kernel, made_for_id = excluded.made_for_id,
      parent_version_id = excluded.parent_version_id, own_bytes = excluded.own_bytes, shared_bytes = excluded.shared_bytes,
      reclaimable_bytes = excluded.reclaimable_bytes, reported_at = excluded.reported_at, scan = excluded.scan`
}

/** Deletes the images that a complete inventory did not name. */
export async function dropOldImages(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  scan: number,
): Promise<void> {
  await db.edgeImage.deleteMany({ where: { organizationId, edgeId, scan: { not: scan } } })
}
