import type { Prisma } from '@bootfarm/db'
import type { BootProfileReport } from '@bootfarm/proto/uplink'
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
  revision: true,
  createdAt: true,
  parentVersionId: true,
  manifestRoot: true,
  manifestCounter: true,
  kernelSha256: true,
  kernelSizeBytes: true,
  initrdSha256: true,
  initrdSizeBytes: true,
  atEdges: {
    where: { edge: { site: { deletionId: null } } },
    orderBy: [{ edge: { name: 'asc' } }, { edgeId: 'asc' }],
    take: edgesShownMax,
    select: {
      edgeId: true,
      state: true,
      isLayer: true,
      checkedAt: true,
      reportedAt: true,
      ownBytes: true,
      sharedBytes: true,
      reclaimableBytes: true,
      bootProfiles: true,
      edge: { select: { name: true, siteId: true, site: { select: { name: true } } } },
    },
  },
} satisfies Prisma.VdiskVersionSelect
type VersionDetailRow = Prisma.VdiskVersionGetPayload<{ select: typeof versionDetailSelect }>
type AtEdgeRow = VersionDetailRow['atEdges'][number]

interface DetailContext {
  resolved: ResolvedVersions
  allowed: Map<string, StepName[]>
  tallies: DeviceTallies
  /** Returns whether an edge of this site is shown. */
  seesEdge: (siteId: string) => boolean
}

export function versionDetailOf(
  row: VersionDetailRow,
  { resolved, allowed, tallies, seesEdge }: DetailContext,
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
    atEdges: row.atEdges.filter(({ edge }) => seesEdge(edge.siteId)).map(atEdgeOf),
    running: tallies.runningOf(id),
    next: tallies.nextOf(id),
  }
}

function bundleFileOf(sha256: string | null, sizeBytes: bigint | null): VdiskVersionDetail['kernel'] {
  return sha256 === null ? null : { sha256, sizeBytes: Number(sizeBytes ?? 0n) }
}

function atEdgeOf({ edge, checkedAt, reportedAt, ...row }: AtEdgeRow): VdiskVersionDetail['atEdges'][number] {
  return {
    edgeId: row.edgeId,
    edgeName: edge.name,
    siteName: edge.site.name,
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
