import type { Prisma } from '@bootfarm/db'
import type { BootProfileReport } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../context/service-context.ts'
import { accessOf, type ResolvedVersions } from '../rules/device/version-access.ts'
import type { VdiskVersionDetail } from './schema.ts'
import type { DeviceTallies } from './tally-devices.ts'
import { versionFactsSelect } from './version-facts.ts'
import type { BootProfileView } from './version-schema.ts'
import type { StepName } from './version-steps.ts'

const edgesShownMax = 200

export const versionDetailSelect = {
  ...versionFactsSelect,
  sizeBytes: true,
  diskPath: true,
  kernelPath: true,
  initrdPath: true,
  commandLine: true,
  note: true,
  labels: true,
  isProtected: true,
  revision: true,
  createdAt: true,
  parentVersionId: true,
  manifestRoot: true,
  manifestCounter: true,
  kernelSha256: true,
  kernelSizeBytes: true,
  initrdSha256: true,
  initrdSizeBytes: true,
} satisfies Prisma.VdiskVersionSelect
type VersionDetailRow = Prisma.VdiskVersionGetPayload<{ select: typeof versionDetailSelect }>

/** An edge's copy of a version. */
export interface AtEdge {
  versionId: string
  edgeId: string
  edgeName: string
  siteId: string
  siteName: string
  state: VdiskVersionDetail['atEdges'][number]['state']
  isLayer: boolean
  checkedAt: Date | null
  reportedAt: Date
  ownBytes: bigint
  sharedBytes: bigint
  reclaimableBytes: bigint
  bootProfiles: unknown
}

/**
 * Returns the first copies of each of these versions, by the edges' names: thousands of edges have one, and only these
 * are read.
 */
export async function readAtEdges(
  db: DbOrTransaction,
  { organizationId, versionIds }: { organizationId: string; versionIds: string[] },
): Promise<Map<string, AtEdge[]>> {
  const rows = await db.$queryRaw<AtEdge[]>`
    select shown.* from unnest(${versionIds}::uuid[]) with ordinality as asked (version_id, place), lateral (
      select stored.version_id::text as "versionId", edge.id::text as "edgeId", edge.name as "edgeName",
        site.id::text as "siteId", site.name as "siteName", stored.state::text, stored.is_layer as "isLayer",
        stored.checked_at as "checkedAt", stored.reported_at as "reportedAt", stored.own_bytes as "ownBytes",
        stored.shared_bytes as "sharedBytes", stored.reclaimable_bytes as "reclaimableBytes",
        stored.boot_profiles as "bootProfiles"
      from edge join edge_version as stored on stored.organization_id = edge.organization_id and stored.edge_id = edge.id
        join site on site.organization_id = edge.organization_id and site.id = edge.site_id
      where edge.organization_id = ${organizationId}::uuid and stored.version_id = asked.version_id
        and site.deletion_id is null
      order by edge.name, edge.id limit ${edgesShownMax}) as shown
    order by asked.place, shown."edgeName", shown."edgeId"`
  return Map.groupBy(rows, ({ versionId }) => versionId)
}

interface DetailContext {
  resolved: ResolvedVersions
  allowed: Map<string, StepName[]>
  tallies: DeviceTallies
  atEdges: Map<string, AtEdge[]>
  /** Returns whether an edge of this site is shown. */
  seesEdge: (siteId: string) => boolean
}

export function versionDetailOf(
  row: VersionDetailRow,
  { resolved, allowed, tallies, atEdges, seesEdge }: DetailContext,
): VdiskVersionDetail {
  const { id, number, diskPath, kernelPath, initrdPath, commandLine, note, labels, revision, state } = row
  return {
    id,
    number,
    diskPath,
    kernelPath,
    initrdPath,
    commandLine,
    note,
    labels,
    revision,
    state,
    isProtected: row.isProtected,
    sizeBytes: Number(row.sizeBytes),
    createdAt: row.createdAt.toISOString(),
    access: accessOf(resolved, row),
    allowedSteps: allowed.get(id) ?? [],
    releasedAt: row.releasedAt?.toISOString() ?? null,
    sealedAt: row.sealedAt?.toISOString() ?? null,
    isSealing: row.sealedAt === null && row.sealAskedAt !== null,
    parentVersionId: row.parentVersionId,
    manifest: row.manifestRoot && {
      root: Buffer.from(row.manifestRoot).toString('base64'),
      counter: Number(row.manifestCounter ?? 0n),
    },
    kernel: bundleFileOf(row.kernelSha256, row.kernelSizeBytes),
    initrd: bundleFileOf(row.initrdSha256, row.initrdSizeBytes),
    atEdges: (atEdges.get(id) ?? []).filter(({ siteId }) => seesEdge(siteId)).map(atEdgeOf),
    running: tallies.runningOf(id),
    next: tallies.nextOf(id),
  }
}

function bundleFileOf(sha256: string | null, sizeBytes: bigint | null): VdiskVersionDetail['kernel'] {
  return sha256 === null ? null : { sha256, sizeBytes: Number(sizeBytes ?? 0n) }
}

function atEdgeOf({ checkedAt, reportedAt, ...row }: AtEdge): VdiskVersionDetail['atEdges'][number] {
  return {
    edgeId: row.edgeId,
    edgeName: row.edgeName,
    siteName: row.siteName,
    state: row.state,
    isLayer: row.isLayer,
    ownBytes: Number(row.ownBytes),
    sharedBytes: Number(row.sharedBytes),
    reclaimableBytes: Number(row.reclaimableBytes),
    bootProfiles: bootProfilesOf(row.bootProfiles),
    checkedAt: checkedAt?.toISOString() ?? null,
    reportedAt: reportedAt.toISOString(),
  }
}

/** @param kept only `takeStoreMessage` writes it, from a message that zod held against its schema */
function bootProfilesOf(kept: unknown): BootProfileView[] {
  const profiles = (kept ?? []) as BootProfileReport[]
  return profiles
    .map(({ learnedUnixMs, ...profile }) => ({
      ...profile,
      learnedAt: learnedUnixMs === undefined ? null : new Date(learnedUnixMs).toISOString(),
    }))
    .sort((a, b) => Number(b.hardware === 'any') - Number(a.hardware === 'any'))
}
