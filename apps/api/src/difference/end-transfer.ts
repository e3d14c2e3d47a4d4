import type { PackedDifference } from '@bootfarm/proto/uplink'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'

interface EndedJob {
  organizationId: string
  edgeId: string
  differenceId: string | null
  now: Date
}

/**
 * Records what an edge has packed, and that it keeps it.
 * @returns why the difference is refused; null if it is accepted
 */
export async function endPack(
  db: DbOrTransaction,
  { packed, toControlPlane, ...job }: EndedJob & { packed: PackedDifference | undefined; toControlPlane: boolean },
): Promise<string | null> {
  const { organizationId, differenceId, now } = job
  if (!packed) return 'the edge did not report what it packed'
  const row =
    differenceId === null
      ? null
      : await db.difference.findUnique({
          where: ownRow({ organizationId }, differenceId),
          select: { listSha256: true, storedAt: true },
        })
  if (!row || differenceId === null) return 'nobody needs the difference any more'
  const { sizeBytes, listSha256 } = packed
  if (toControlPlane && (row.storedAt === null || row.listSha256 !== listSha256))
    return 'the control plane has not got all pieces of the difference'
  await db.difference.update({
    where: ownRow({ organizationId }, differenceId),
    data: { sizeBytes, listSha256, packedAt: now },
    select: { id: true },
  })
  await keepAtEdge(db, job)
  return null
}

/** The edge has the whole difference, and keeps it for the others of its site. */
export async function keepAtEdge(
  db: DbOrTransaction,
  { organizationId, edgeId, differenceId, now }: EndedJob,
): Promise<void> {
  await db.$executeRaw`
    insert into edge_difference (organization_id, edge_id, difference_id, kept_since)
    select organization_id, ${edgeId}::uuid, id, ${now} from difference
    where organization_id = ${organizationId}::uuid and id = ${differenceId}::uuid
    on conflict do nothing`
}
