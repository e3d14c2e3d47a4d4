import type { Prisma } from '@bootfarm/db'
import { requireCurrent } from '../access/require-current.ts'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Place } from '../rules/place.ts'
import { accessOf, type ResolvedVersions, type VersionAccess } from '../rules/version-access.ts'
import { withVdiskHeld } from './hold-vdisk.ts'
import { readResolved, versionChoicesSelect, versionFactsSelect } from './version-facts.ts'
import type { ChangedVersion } from './version-schema.ts'

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
const vdiskSelect = {
  id: true,
  name: true,
  farmId: true,
  ...versionChoicesSelect,
} satisfies Prisma.VdiskSelect

export type OpenVersionRow = Prisma.VdiskVersionGetPayload<{ select: typeof versionSelect }>
export type OpenVdiskRow = Prisma.VdiskGetPayload<{ select: typeof vdiskSelect }>

export interface OpenVdisk {
  vdisk: OpenVdiskRow
  place: Place
  resolved: ResolvedVersions
  now: Date
}
export interface OpenVersion extends OpenVdisk {
  version: OpenVersionRow
  access: VersionAccess
}

/** What the caller has seen: of the vDisk, of the version, or neither. */
interface Seen {
  vdiskRevision?: number
  revision?: number
}

/**
 * Does a change of one version with its vDisk held: nobody else changes any of the vDisk's versions meanwhile. Edges of the farm are woken,
 * and a promotion is told. Throws `not_found`; `conflict` where the caller has seen another revision.
 */
export function changeVersion<T>(
  context: ServiceContext,
  { versionId, vdiskRevision, revision }: { versionId: string } & Seen,
  change: (open: OpenVersion) => Promise<T>,
): Promise<T> {
  return withVdiskHeld(context, { versionId }, async () => {
    const { db, actor } = context
    const { organizationId } = actor
    await requireCurrent(context, { kind: 'version', id: versionId, revision })
    const version = await db.vdiskVersion.findUniqueOrThrow({
      where: ownRow({ organizationId }, versionId),
      select: versionSelect,
    })
    const open = await openVdisk(context, { vdiskId: version.vdiskId, revision: vdiskRevision })
    const result = await change({ ...open, version, access: accessOf(open.resolved, version) })
    return result
  })
}

/** As `changeVersion`, for what is about no one version. */
export function changeVdiskVersions<T>(
  context: ServiceContext,
  { vdiskId, revision }: { vdiskId: string; revision?: number },
  change: (open: OpenVdisk) => Promise<T>,
): Promise<T> {
  return withVdiskHeld(context, { vdiskId }, async () => {
    const result = await change(await openVdisk(context, { vdiskId, revision }))
    return result
  })
}

async function openVdisk(
  context: ServiceContext,
  { vdiskId, revision }: { vdiskId: string; revision: number | undefined },
): Promise<OpenVdisk> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = await requireCurrent(context, { kind: 'vdisk', id: vdiskId, revision })
  const vdisk = await db.vdisk.findUniqueOrThrow({
    where: ownRow({ organizationId }, vdiskId),
    select: vdiskSelect,
  })
  const now = clock()
  const resolved = (await readResolved(db, { organizationId, vdiskIds: [vdiskId] }, now)).get(vdiskId)
  if (!resolved) throw new AppError('not_found')
  return { vdisk, place, resolved, now }
}

/** As it is now, with what further changes have to name. */
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

/** Throws `conflict` for one that is written or being made yet, and for one that is no more than a file. */
export function requireInStore({ number, sealedAt, manifestRoot }: OpenVersionRow, verb: string): void {
  if (sealedAt === null)
    throw conflict(`Version ${number} is not sealed yet: it can be ${verb} once it no longer changes.`)
  if (manifestRoot === null)
    throw conflict(
      `Version ${number} is a plain file, which cannot be ${verb}: import it into the edges’ store as a version first.`,
    )
}
