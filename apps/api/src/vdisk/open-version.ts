import type { Prisma } from '@bootfarm/db'
import { requireCurrent } from '../access/require-current.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type ResolvedVersions, resolveVersions } from '../rules/device/version-access.ts'
import type { Place } from '../rules/place.ts'
import { withVdiskHeld } from './hold-vdisk.ts'
import { readVersions, versionFactsSelect } from './version-facts.ts'
import type { ChangedVersion } from './version-schema.ts'
import { apply, type VdiskVersions, type VersionStep } from './version-steps.ts'

const versionSelect = {
  ...versionFactsSelect,
  vdiskId: true,
  sizeBytes: true,
  diskPath: true,
  kernelPath: true,
  initrdPath: true,
  commandLine: true,
  parentVersionId: true,
  manifestRoot: true,
  revision: true,
  kernelSha256: true,
  kernelSizeBytes: true,
  initrdSha256: true,
  initrdSizeBytes: true,
} satisfies Prisma.VdiskVersionSelect
const vdiskSelect = { id: true, name: true, farmId: true } satisfies Prisma.VdiskSelect

type OpenVersionRow = Prisma.VdiskVersionGetPayload<{ select: typeof versionSelect }>
type OpenVdiskRow = Prisma.VdiskGetPayload<{ select: typeof vdiskSelect }>

export interface OpenVdisk {
  vdisk: OpenVdiskRow
  place: Place
  versions: VdiskVersions
  resolved: ResolvedVersions
  now: Date
}
export interface OpenVersion extends OpenVdisk {
  version: OpenVersionRow
}

/** The revision that the caller has seen: of the vDisk, of the version, or neither. */
interface Seen {
  vdiskRevision?: number
  revision?: number
}

/**
 * Executes a change of one version with its vDisk locked: nobody else changes any of the vDisk's versions meanwhile.
 * Throws `not_found`; `conflict` if the caller has seen another revision.
 */
export function changeVersion<T>(
  context: ServiceContext,
  { versionId, vdiskRevision, revision }: { versionId: string } & Seen,
  change: (open: OpenVersion) => Promise<T>,
): Promise<T> {
  return withVdiskHeld(context, { versionId }, async () => {
    const { db, actor } = context
    await requireCurrent(context, { kind: 'version', id: versionId, revision })
    const version = await db.vdiskVersion.findUniqueOrThrow({
      where: ownRow(actor, versionId),
      select: versionSelect,
    })
    const open = await openVdisk(context, { vdiskId: version.vdiskId, revision: vdiskRevision })
    return change({ ...open, version })
  })
}

/** Like `changeVersion`, for changes that concern no single version. */
export function changeVdiskVersions<T>(
  context: ServiceContext,
  { vdiskId, revision }: { vdiskId: string; revision?: number },
  change: (open: OpenVdisk) => Promise<T>,
): Promise<T> {
  return withVdiskHeld(context, { vdiskId }, async () => change(await openVdisk(context, { vdiskId, revision })))
}

async function openVdisk(
  context: ServiceContext,
  { vdiskId, revision }: { vdiskId: string; revision: number | undefined },
): Promise<OpenVdisk> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId, revision })
  const vdisk = await db.vdisk.findUniqueOrThrow({ where: ownRow(actor, vdiskId), select: vdiskSelect })
  const now = clock()
  const versions = await readVersions(db, { organizationId, vdiskId })
  if (!versions) throw new AppError('not_found')
  return { vdisk, place, versions, resolved: resolveVersions(versions, versions.versions, now), now }
}

/** Returns the versions after a step. Throws its refusal. */
export function nextVersions({ versions, now }: OpenVdisk, step: VersionStep): VdiskVersions {
  const { next, refusal } = apply(versions, step, now)
  if (refusal) throw new AppError(refusal.code, { public: refusal.text })
  return next
}

/** The current revision, which further changes must name. */
export async function changedVersionNow(
  { db, actor: { organizationId } }: ServiceContext,
  versionId: string,
): Promise<ChangedVersion> {
  const { id, number, revision, vdisk } = await db.vdiskVersion.findUniqueOrThrow({
    where: ownRow({ organizationId }, versionId),
    select: { id: true, number: true, revision: true, vdisk: { select: { name: true, revision: true } } },
  })
  return { id, number, revision, name: `${vdisk.name} version ${number}`, vdiskRevision: vdisk.revision }
}

export function conflict(text: string): AppError {
  return new AppError('conflict', { public: text })
}
