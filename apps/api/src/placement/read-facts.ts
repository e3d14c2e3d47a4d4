import { edgeOnlineWithinMs } from '@bootfarm/proto/uplink'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'
import { resolveVersions } from '../rules/device/version-access.ts'
import { dayMs } from '../rules/utc-day.ts'
import { activeStates } from '../store/public.ts'
import { ruleOf } from './placement-rule.ts'
import { readPlacement } from './read-placement.ts'
import type { FactCopy, FactEdge, FactJob, FactSetback, TransferFacts } from './transfer-facts.ts'

/** Of an organization at once. */
const transfersMax = 64
/** Failures are forgotten after that: the longest pause is shorter. */
const setbackMs = 2 * dayMs
/** An inventory that began before a job was done does not name its version yet. */
const arrivedWithin = '60 seconds'
const setbacksReadMax = 1000
/** Of a keeper's own cancellations, which are no decision of a person. */
export const notNeededText = 'No edge needs it any more.'
const transferKinds = ['pack' as const, 'fetch' as const]
const transferKind = { in: transferKinds }

interface VdiskKey {
  organizationId: string
  vdiskId: string
}

/** What the transfers of a vDisk's versions follow from; null: the vDisk does not exist. */
export async function readFacts(
  db: DbOrTransaction,
  key: VdiskKey,
  { now, hasObjects }: { now: Date; hasObjects: boolean },
): Promise<TransferFacts | null> {
  const { organizationId, vdiskId } = key
  const vdisk = await db.vdisk.findUnique({ where: ownRow(key, vdiskId), select: { farmId: true } })
  if (!vdisk) return null
  const { farmId } = vdisk
  const { rules, changedAt } = await readPlacement(db, { organizationId, farmId, vdiskId })
  const sites = await db.site.findMany({ where: { organizationId, farmId }, select: { id: true, timeZone: true } })
  const edges = await readEdges(db, { organizationId, farmId, now })
  const active = await db.storeJob.count({ where: { organizationId, state: activeStates, kind: transferKind } })
  return {
    now,
    hasObjects,
    versions: await readFactVersions(db, key, now),
    sites: sites.map(({ id, timeZone }) => ({ id, timeZone, rule: ruleOf(rules, id) })),
    edges,
    copies: await readCopies(db, key),
    differences: await readDifferences(db, key),
    jobs: await readJobs(db, key),
    setbacks: await readSetbacks(db, key, laterOf(new Date(now.getTime() - setbackMs), changedAt)),
    turns: transfersMax - active,
  }
}

function laterOf(one: Date, other: Date | null): Date {
  return other && other > one ? other : one
}

async function readFactVersions(db: DbOrTransaction, { organizationId, vdiskId }: VdiskKey, now: Date) {
  const choices = await db.vdisk.findUniqueOrThrow({
    where: ownRow({ organizationId }, vdiskId),
    select: { defaultVersionId: true, overrideVersionId: true, pendingVersionId: true, maintenanceDeviceId: true },
  })
  const rows = await db.vdiskVersion.findMany({
    // Only the edge of a capture needs the empty disk below it.
    where: { organizationId, vdiskId, sealedAt: { not: null }, isBlank: false },
    orderBy: { number: 'asc' },
    select: {
      id: true,
      number: true,
      parentVersionId: true,
      manifestRoot: true,
      state: true,
      releasedAt: true,
      sealedAt: true,
      sealAskedAt: true,
    },
  })
  const { production, pending } = resolveVersions(choices, rows, now)
  const waiting = await db.waitingPromotion.findFirst({
    where: { organizationId, vdiskId, givenUpAt: null },
    select: { versionId: true },
  })
  const first = new Set([production?.id, pending?.version.id, waiting?.versionId])
  // A plain file is copied by hand.
  return rows.flatMap(({ id, number, parentVersionId, manifestRoot }) =>
    manifestRoot === null ? [] : [{ id, number, parentVersionId, isFirst: first.has(id) }],
  )
}

interface EdgeRow {
  id: string
  siteId: string
  heartbeatAt: Date | null
  hasStore: boolean
  kinds: string[] | null
  transfers: number
  jobs: number
  free: bigint | null
}

async function readEdges(
  db: DbOrTransaction,
  { organizationId, farmId, now }: { organizationId: string; farmId: string; now: Date },
): Promise<FactEdge[]> {
  const rows = await db.$queryRaw<EdgeRow[]>`
    select edge.id::text, edge.site_id::text as "siteId", edge.heartbeat_at as "heartbeatAt",
      edge.store_reported_at is not null as "hasStore", edge.heartbeat->'storeJobKinds' as kinds,
      coalesce(job.transfers, 0)::int as transfers, coalesce(job.jobs, 0)::int as jobs,
      (edge.heartbeat->'machine'->>'storeFreeBytes')::bigint - coalesce(job.pending, 0)::bigint as free
    from edge join site on site.organization_id = edge.organization_id and site.id = edge.site_id
      left join (select edge_id, count(*) as jobs, count(*) filter (where kind::text in ('pack', 'fetch')) as transfers,
          sum(greatest(0, 2 * difference_size_bytes - progress_bytes)) filter (where kind::text = 'fetch') as pending
        from store_job where organization_id = ${organizationId}::uuid and state in ('queued', 'running')
        group by edge_id) as job on job.edge_id = edge.id
    where edge.organization_id = ${organizationId}::uuid and site.farm_id = ${farmId}::uuid and edge.revoked_at is null
      and site.deletion_id is null
    order by edge.id`
  return rows.map(({ heartbeatAt, kinds, free, ...edge }) => ({
    ...edge,
    freeBytes: free === null ? null : Number(free),
    isOnline: heartbeatAt !== null && now.getTime() - heartbeatAt.getTime() < edgeOnlineWithinMs,
    packs: kinds?.includes('pack') ?? false,
    fetches: kinds?.includes('fetch') ?? false,
  }))
}

/** Layers are no copies; what an edge has not finished importing is none either. */
function readCopies(db: DbOrTransaction, { organizationId, vdiskId }: VdiskKey): Promise<FactCopy[]> {
  return db.$queryRaw<FactCopy[]>`
    select stored.version_id::text as "versionId", stored.edge_id::text as "edgeId", stored.state::text as state
    from edge_version as stored join vdisk_version as version
      on version.organization_id = stored.organization_id and version.id = stored.version_id
    where stored.organization_id = ${organizationId}::uuid and version.vdisk_id = ${vdiskId}::uuid
      and stored.state in ('present', 'damaged') and not stored.is_layer
    union all
    select distinct job.made_id::text, job.edge_id::text, 'arrived'
    from (select *, case kind::text when 'merge' then into_version_id else version_id end as made_id from store_job) as job
      join edge on edge.organization_id = job.organization_id and edge.id = job.edge_id
    where job.organization_id = ${organizationId}::uuid and job.vdisk_id = ${vdiskId}::uuid
      and job.kind::text in ('fetch', 'import', 'adopt', 'seal', 'merge') and job.made_id is not null
      and job.state = 'done' and job.ended_at + ${arrivedWithin}::interval > coalesce(edge.store_reported_at, '-infinity')
      and not exists (select from edge_version as stored where stored.organization_id = job.organization_id
        and stored.edge_id = job.edge_id and stored.version_id = job.made_id and stored.state in ('present', 'damaged'))`
}

async function readDifferences(db: DbOrTransaction, { organizationId, vdiskId }: VdiskKey) {
  const rows = await db.difference.findMany({
    where: { organizationId, vdiskId },
    orderBy: { id: 'asc' },
    select: {
      id: true,
      versionId: true,
      baseVersionId: true,
      sizeBytes: true,
      listSha256: true,
      packedAt: true,
      storedAt: true,
      atEdges: { orderBy: { edgeId: 'asc' }, select: { edgeId: true } },
    },
  })
  return rows.map(({ packedAt, storedAt, atEdges, ...row }) => ({
    ...row,
    isPacked: packedAt !== null,
    isStored: storedAt !== null,
    edgeIds: atEdges.map(({ edgeId }) => edgeId),
  }))
}

async function readJobs(db: DbOrTransaction, { organizationId, vdiskId }: VdiskKey): Promise<FactJob[]> {
  const rows = await db.storeJob.findMany({
    where: { organizationId, vdiskId, state: activeStates, kind: transferKind },
    orderBy: [{ askedAt: 'asc' }, { id: 'asc' }],
    select: {
      id: true,
      kind: true,
      edgeId: true,
      versionId: true,
      baseVersionId: true,
      differenceId: true,
      fromControlPlane: true,
      rateBytesPerSecond: true,
      progressBytes: true,
      totalBytes: true,
    },
  })
  return rows.map(({ kind, versionId, fromControlPlane, rateBytesPerSecond, progressBytes, totalBytes, ...row }) => ({
    ...row,
    kind: kind === 'pack' ? 'pack' : 'fetch',
    versionId: versionId ?? '',
    fromControlPlane: fromControlPlane ?? false,
    rateBytesPerSecond: rateBytesPerSecond === null ? null : Number(rateBytesPerSecond),
    progressBytes: Number(progressBytes),
    totalBytes: Number(totalBytes),
  }))
}

/** @param since an older one counts no more: it is too long ago, or the placement was saved after it */
async function readSetbacks(
  db: DbOrTransaction,
  { organizationId, vdiskId }: VdiskKey,
  since: Date,
): Promise<FactSetback[]> {
  const rows = await db.storeJob.findMany({
    where: {
      organizationId,
      vdiskId,
      kind: transferKind,
      state: { in: ['failed', 'cancelled'] },
      endedAt: { gt: since },
      OR: [{ state: 'failed' }, { message: null }, { message: { not: notNeededText } }],
    },
    orderBy: [{ endedAt: 'desc' }, { id: 'asc' }],
    take: setbacksReadMax,
    select: { kind: true, edgeId: true, versionId: true, state: true, endedAt: true, message: true },
  })
  const found = new Map<string, FactSetback>()
  for (const { kind, edgeId, versionId, state, endedAt, message } of rows) {
    const key = `${kind} ${versionId} ${edgeId}`
    const known = found.get(key)
    if (known) known.failures += state === 'failed' ? 1 : 0
    else
      found.set(key, {
        kind: kind === 'pack' ? 'pack' : 'fetch',
        edgeId,
        versionId: versionId ?? '',
        failures: state === 'failed' ? 1 : 0,
        isCancelled: state === 'cancelled',
        lastAt: endedAt ?? since,
        message,
      })
  }
  return [...found.values()]
}
