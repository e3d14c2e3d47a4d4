import type { Prisma } from '@bootfarm/db'
import type { DesiredState } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../../context/service-context.ts'
import { type ResolvedVersions, resolveVersions } from '../../rules/device/version-access.ts'
import { versionChoicesSelect, versionFactsSelect } from '../../vdisk/version-facts.ts'
import type { readSiteMenus } from './site-menus.ts'

type StateVdisk = DesiredState['vdisks'][number]

const versionSelect = {
  ...versionFactsSelect,
  sizeBytes: true,
  diskPath: true,
  kernelPath: true,
  initrdPath: true,
  commandLine: true,
  parentVersionId: true,
  manifestRoot: true,
  manifestCounter: true,
} satisfies Prisma.VdiskVersionSelect
const select = {
  id: true,
  name: true,
  ...versionChoicesSelect,
  writeCache: true,
  writeCacheLimitBytes: true,
  writeCacheFull: true,
  versions: { orderBy: { number: 'desc' }, select: versionSelect },
} satisfies Prisma.VdiskSelect
const orderBy = [{ createdAt: 'asc' as const }, { id: 'asc' as const }]

type VdiskRow = Prisma.VdiskGetPayload<{ select: typeof select }>
type VersionRow = VdiskRow['versions'][number]

interface SiteVdisk {
  id: string
  resolved: ResolvedVersions<VersionRow>
  /** Its devices' writes outlive their boots. */
  keepsWrites: boolean
  stated: StateVdisk
}

/** vDisks of collections come first: an unregistered device gets the first one if the site lets it boot. */
export async function readSiteVdisks(
  db: DbOrTransaction,
  { organizationId, siteId, now }: { organizationId: string; siteId: string; now: Date },
  { menus, hasOwnVdisks }: { menus: Awaited<ReturnType<typeof readSiteMenus>>; hasOwnVdisks: boolean },
): Promise<SiteVdisk[]> {
  const ofCollections = await db.vdisk.findMany({
    where: { organizationId, collections: { some: { organizationId, siteId } } },
    orderBy,
    select,
  })
  const ofDevices = !hasOwnVdisks
    ? []
    : await db.device.findMany({
        where: { organizationId, siteId, vdiskId: { not: null } },
        distinct: ['vdiskId'],
        select: { vdiskId: true },
      })
  const known = new Set(ofCollections.map(({ id }) => id))
  const named = [
    ...ofDevices.flatMap(({ vdiskId }) => vdiskId ?? []),
    ...menus.flatMap(({ entries }) => entries.flatMap(({ vdiskId }) => vdiskId ?? [])),
  ]
  const missing = named.filter((id) => !known.has(id))
  const ofOthers =
    missing.length === 0
      ? []
      : await db.vdisk.findMany({
          where: { organizationId, id: { in: missing } },
          orderBy,
          select,
        })
  return [...ofCollections, ...ofOthers].map((row) => siteVdiskOf(row, now))
}

function siteVdiskOf(row: VdiskRow, now: Date): SiteVdisk {
  const resolved = resolveVersions(row, row.versions, now)
  const { production, pending } = resolved
  const stated = row.versions.filter(
    ({ id, sealedAt }) => sealedAt !== null || (id === resolved.maintenance?.id && resolved.writerDeviceId !== null),
  )
  const ordered = production ? [production, ...stated.filter(({ id }) => id !== production.id)] : stated
  return {
    id: row.id,
    resolved,
    keepsWrites: row.writeCache === 'edge_persistent' || row.writeCache === 'private',
    stated: {
      id: row.id,
      name: row.name,
      ...writeCacheOf(row),
      ...(resolved.default ? { defaultVersionId: resolved.default.id } : {}),
      ...(resolved.override ? { overrideVersionId: resolved.override.id } : {}),
      ...(pending ? { pending: { versionId: pending.version.id, atUnixMs: pending.at.getTime() } } : {}),
      versions: ordered.map(stateVersionOf),
    },
  }
}

function writeCacheOf(row: VdiskRow): Pick<StateVdisk, 'writeCache'> {
  const { writeCache, writeCacheLimitBytes, writeCacheFull } = row
  // The default of every device, including those from before there were other write caches.
  if (writeCache === 'device_ram' && writeCacheLimitBytes === null && writeCacheFull === 'stop') return {}
  return {
    writeCache: {
      class: writeCache,
      ...(writeCacheLimitBytes === null ? {} : { limitBytes: Number(writeCacheLimitBytes) }),
      full: writeCacheFull,
    },
  }
}

function stateVersionOf(row: VersionRow): StateVdisk['versions'][number] {
  const { id, number, sizeBytes, diskPath, kernelPath, initrdPath, commandLine } = row
  return {
    id,
    number,
    sizeBytes: Number(sizeBytes),
    diskPath,
    kernelPath,
    initrdPath,
    commandLine,
    ...(row.manifestRoot
      ? {
          manifest: {
            root: Buffer.from(row.manifestRoot).toString('base64'),
            counter: Number(row.manifestCounter ?? 0n),
          },
        }
      : {}),
    ...(row.sealedAt === null && row.parentVersionId ? { layerAboveVersionId: row.parentVersionId } : {}),
  }
}
