import { keptDifferencesMax, type StoreJobOrder, storeJobsMax } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../../context/service-context.ts'
import { madeVersionId } from '../../store-job/change-jobs.ts'

/** Returns the differences that the edge keeps for others, the newest ones if there are more than an edge accepts. */
export async function readKeptDifferences(
  db: DbOrTransaction,
  { organizationId, edgeId }: { organizationId: string; edgeId: string },
): Promise<string[]> {
  const rows = await db.edgeDifference.findMany({
    where: { organizationId, edgeId },
    orderBy: [{ keptSince: 'desc' }, { differenceId: 'asc' }],
    take: keptDifferencesMax,
    select: { differenceId: true },
  })
  return rows.map(({ differenceId }) => differenceId)
}

/** Returns the jobs that the edge's store has yet to start or to finish, oldest first. */
export async function readStoreJobs(
  db: DbOrTransaction,
  { organizationId, edgeId }: { organizationId: string; edgeId: string },
): Promise<StoreJobOrder[]> {
  const jobs = await db.storeJob.findMany({
    where: { organizationId, edgeId, state: { in: ['queued', 'running'] } },
    orderBy: [{ askedAt: 'asc' }, { id: 'asc' }],
    take: storeJobsMax,
    select: jobSelect,
  })
  const fetchedIds = jobs.flatMap(({ kind, versionId }) => (kind === 'fetch' && versionId ? [versionId] : []))
  const madeIds = [...jobs.flatMap((job) => madeVersionId(job) ?? []), ...fetchedIds]
  const versions = await db.vdiskVersion.findMany({
    where: { organizationId, id: { in: madeIds } },
    select: {
      id: true,
      number: true,
      parentVersionId: true,
      kernelPath: true,
      initrdPath: true,
      commandLine: true,
      manifestRoot: true,
      manifestCounter: true,
    },
  })
  const versionOf = new Map(versions.map((version) => [version.id, version]))
  return jobs.map((job) => {
    const made = versionOf.get(madeVersionId(job) ?? '')
    const { id, kind, vdiskId, versionId, intoVersionId, bootFiles, modules, exportFormat } = job
    return {
      id,
      kind,
      ...(vdiskId ? { vdiskId } : {}),
      ...(versionId ? { versionId } : {}),
      ...(intoVersionId ? { intoVersionId } : {}),
      ...sourceOf(job),
      ...(bootFiles ? { bootFiles } : {}),
      ...(modules.length > 0 ? { modules } : {}),
      ...(exportFormat ? { format: exportFormat } : {}),
      ...(made ? { number: made.number } : {}),
      // For other kinds, the command line found in the image counts.
      ...(made && kind === 'import' && made.commandLine !== '' ? { commandLine: made.commandLine } : {}),
      ...(job.deviceId ? { deviceId: job.deviceId } : {}),
      // Only `dropWrites` sets it.
      ...(job.layerClass ? { layerClass: job.layerClass as StoreJobOrder['layerClass'] } : {}),
      ...(made?.parentVersionId ? { parentVersionId: made.parentVersionId } : {}),
      ...(made?.kernelPath ? { kernelPath: made.kernelPath } : {}),
      ...(made?.initrdPath ? { initrdPath: made.initrdPath } : {}),
      ...(kind === 'import' ? bootVersionOf(job) : differenceOf(job)),
      ...(kind === 'fetch' ? manifestOf(versionOf.get(versionId ?? '')) : {}),
    }
  })
}

/** The version whose boot files an import takes. */
function bootVersionOf({ baseVersionId }: { baseVersionId: string | null }): Pick<StoreJobOrder, 'bootVersionId'> {
  return baseVersionId ? { bootVersionId: baseVersionId } : {}
}

const sourceSelect = {
  sourcePath: true,
  uploadId: true,
  sourceUrl: true,
  sourceSizeBytes: true,
  sourceSha256: true,
} as const

interface SourceColumns {
  sourcePath: string | null
  uploadId: string | null
  sourceUrl: string | null
  sourceSizeBytes: bigint | null
  sourceSha256: string | null
}

/** Where the image of an import is. */
function sourceOf({ sourcePath, uploadId, sourceUrl, sourceSizeBytes, sourceSha256 }: SourceColumns) {
  return {
    ...(sourcePath ? { sourcePath } : {}),
    ...(uploadId ? { uploadId } : {}),
    ...(sourceUrl ? { sourceUrl } : {}),
    ...(sourceSizeBytes === null ? {} : { sourceSizeBytes: Number(sourceSizeBytes) }),
    ...(sourceSha256 ? { sourceSha256 } : {}),
  }
}

const differenceSelect = {
  differenceId: true,
  baseVersionId: true,
  toControlPlane: true,
  fromControlPlane: true,
  sourceEdgeIds: true,
  differenceSizeBytes: true,
  differenceListSha256: true,
  rateBytesPerSecond: true,
} as const

interface DifferenceColumns {
  differenceId: string | null
  baseVersionId: string | null
  toControlPlane: boolean | null
  fromControlPlane: boolean | null
  sourceEdgeIds: string[]
  differenceSizeBytes: bigint | null
  differenceListSha256: string | null
  rateBytesPerSecond: bigint | null
}

/** What a job packs, or where it gets a difference. */
function differenceOf(row: DifferenceColumns) {
  const { differenceId, baseVersionId, sourceEdgeIds, differenceSizeBytes, rateBytesPerSecond } = row
  return {
    ...(differenceId ? { differenceId } : {}),
    ...(baseVersionId ? { baseVersionId } : {}),
    ...(row.toControlPlane ? { toControlPlane: true } : {}),
    ...(row.fromControlPlane ? { fromControlPlane: true } : {}),
    ...(sourceEdgeIds.length > 0 ? { sources: sourceEdgeIds } : {}),
    ...(differenceSizeBytes === null ? {} : { differenceSizeBytes: Number(differenceSizeBytes) }),
    ...(row.differenceListSha256 ? { differenceListSha256: row.differenceListSha256 } : {}),
    ...(rateBytesPerSecond === null ? {} : { rateBytesPerSecond: Number(rateBytesPerSecond) }),
  }
}

function manifestOf(
  version: { manifestRoot: Uint8Array | null; manifestCounter: bigint | null } | undefined,
): Pick<StoreJobOrder, 'manifest'> {
  if (!version?.manifestRoot) return {}
  const root = Buffer.from(version.manifestRoot).toString('base64')
  return { manifest: { root, counter: Number(version.manifestCounter ?? 0n) } }
}

const jobSelect = {
  id: true,
  kind: true,
  vdiskId: true,
  versionId: true,
  intoVersionId: true,
  ...sourceSelect,
  bootFiles: true,
  modules: true,
  exportFormat: true,
  deviceId: true,
  layerClass: true,
  ...differenceSelect,
} as const
