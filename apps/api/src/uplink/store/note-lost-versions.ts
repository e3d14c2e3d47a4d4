import { Prisma } from '@bootfarm/db'
import type { AuthenticatedEdge, DbOrTransaction } from '../../context/service-context.ts'
import { emit } from '../../events/event-bus.ts'
import { accessOf, type ResolvedVersions, type VersionFacts } from '../../rules/device/version-access.ts'
import { readResolved } from '../../vdisk/version-facts.ts'
import { recordOfEdge } from '../enrol/record-of-edge.ts'

interface StoredRow {
  id: string
  number: number
  vdiskId: string
  vdiskName: string
}

/** Returns the versions that an edge had, and that its whole inventory `scan` no longer names. */
export function readLostVersions(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  scan: number,
): Promise<StoredRow[]> {
  return db.$queryRaw<StoredRow[]>(Prisma.sql`
    select version.id::text, version.number, vdisk.id::text as "vdiskId", vdisk.name as "vdiskName"
    from edge_version as stored
      join vdisk_version as version on version.organization_id = stored.organization_id and version.id = stored.version_id
      join vdisk on vdisk.organization_id = version.organization_id and vdisk.id = version.vdisk_id
    where stored.organization_id = ${organizationId}::uuid and stored.edge_id = ${edgeId}::uuid and stored.scan <> ${scan}
      and stored.state <> 'missing' and not stored.is_layer and version.deletion_id is null and vdisk.deletion_id is null
    order by vdisk.name, version.number`)
}

/** Records that an edge has lost versions, if the control plane offers them to devices: their boots there fail. */
export async function noteLostVersions(
  { db, now }: { db: DbOrTransaction; now: Date },
  edge: AuthenticatedEdge,
  lost: StoredRow[],
): Promise<void> {
  if (lost.length === 0) return
  const { organizationId } = edge
  const vdiskIds = [...new Set(lost.map(({ vdiskId }) => vdiskId))]
  const resolved = await readResolved(db, { organizationId, vdiskIds }, now)
  const versions = lost.flatMap((version) => {
    const access = offeredAs(resolved.get(version.vdiskId), version.id)
    return access ? [{ ...version, access }] : []
  })
  if (versions.length === 0) return
  await recordOfEdge({ db, now }, edge, (place) =>
    versions.map(({ id, number, vdiskName, access }) => ({
      action: 'version.missing',
      kind: 'version',
      id,
      name: `${vdiskName} version ${number}`,
      place,
      before: { state: 'present', access },
      after: { state: 'missing', access },
    })),
  )
  await emit('versionsLost', { db, now, edge, versions })
}

/** How devices get the version; null: no device does. */
function offeredAs(resolved: ResolvedVersions | undefined, id: string) {
  if (!resolved) return null
  const { override, pending, test, production } = resolved
  const offered: (VersionFacts | null | undefined)[] = [override, resolved.default, pending?.version, test, production]
  const version = offered.find((one) => one?.id === id)
  return version ? accessOf(resolved, version) : null
}
