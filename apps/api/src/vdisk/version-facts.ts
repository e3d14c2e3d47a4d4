import { isDeepStrictEqual } from 'node:util'
import { Prisma } from '@bootfarm/db'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'
import {
  type ResolvedVersions,
  resolveVersions,
  type VersionChoices,
  type VersionFacts,
} from '../rules/device/version-access.ts'
import type { VdiskVersions } from './version-steps.ts'

/** The facts about a version that rules/device/version-access.ts needs. */
export const versionFactsSelect = {
  id: true,
  number: true,
  state: true,
  releasedAt: true,
  sealedAt: true,
  sealAskedAt: true,
  isBlank: true,
} satisfies Prisma.VdiskVersionSelect

/** And of a vDisk. */
export const versionChoicesSelect = {
  defaultVersionId: true,
  overrideVersionId: true,
  pendingVersionId: true,
  maintenanceDeviceId: true,
} satisfies Prisma.VdiskSelect

/** The facts about a version that version-steps.ts needs. */
const stepVersionSelect = { ...versionFactsSelect, manifestRoot: true } satisfies Prisma.VdiskVersionSelect

export interface ChoicesJson {
  choices: VersionChoices
  versions: (Omit<VersionFacts, 'releasedAt' | 'sealedAt' | 'sealAskedAt'> & {
    releasedAt: string | null
    sealedAt: string | null
    sealAskedAt: string | null
  })[]
}

/**
 * The columns of `vdisk` that decide which device boots which version, without the versions that no device can boot.
 */
export const choicesJson = Prisma.sql`jsonb_build_object(
  'choices', jsonb_build_object('defaultVersionId', vdisk.default_version_id, 'overrideVersionId', vdisk.override_version_id,
    'pendingVersionId', vdisk.pending_version_id, 'maintenanceDeviceId', vdisk.maintenance_device_id),
  'versions', coalesce((select jsonb_agg(jsonb_build_object('id', version.id, 'number', version.number, 'state', version.state,
      'releasedAt', version.released_at, 'sealedAt', version.sealed_at, 'sealAskedAt', version.seal_asked_at,
      'isBlank', version.is_blank))
    from vdisk_version as version where version.organization_id = vdisk.organization_id and version.vdisk_id = vdisk.id
      and (version.state <> 'released' or version.id in (vdisk.default_version_id, vdisk.override_version_id, vdisk.pending_version_id)
        or version.number = (select max(newest.number) from vdisk_version as newest
          where newest.organization_id = vdisk.organization_id and newest.vdisk_id = vdisk.id and newest.state = 'released'
            and newest.sealed_at is not null and newest.id is distinct from vdisk.pending_version_id))), '[]'::jsonb))`

export function resolvedOf({ choices, versions }: ChoicesJson, now: Date): ResolvedVersions {
  const dateOf = (text: string | null) => (text === null ? null : new Date(text))
  return resolveVersions(
    choices,
    versions.map(({ releasedAt, sealedAt, sealAskedAt, ...version }) => ({
      ...version,
      releasedAt: dateOf(releasedAt),
      sealedAt: dateOf(sealedAt),
      sealAskedAt: dateOf(sealAskedAt),
    })),
    now,
  )
}

/** By vDisk, for those that exist. */
export async function readResolved(
  db: DbOrTransaction,
  { organizationId, vdiskIds }: { organizationId: string; vdiskIds: string[] },
  now: Date,
): Promise<Map<string, ResolvedVersions>> {
  if (vdiskIds.length === 0) return new Map()
  const rows = await db.$queryRaw<{ id: string; json: ChoicesJson }[]>`
    select id::text, ${choicesJson} as json from vdisk
    where organization_id = ${organizationId}::uuid and id = any(${vdiskIds}::uuid[])`
  return new Map(rows.map(({ id, json }) => [id, resolvedOf(json, now)]))
}

/** Returns all versions of a vDisk as steps need them; null if the vDisk does not exist. */
export async function readVersions(
  db: DbOrTransaction,
  { organizationId, vdiskId }: { organizationId: string; vdiskId: string },
): Promise<VdiskVersions | null> {
  return db.vdisk.findUnique({
    where: ownRow({ organizationId }, vdiskId),
    select: { ...versionChoicesSelect, versions: { select: stepVersionSelect } },
  })
}

/** Writes what a step has made of the versions that it found; those that came or went are the caller's. */
export async function writeVersions(
  db: DbOrTransaction,
  { organizationId, vdiskId }: { organizationId: string; vdiskId: string },
  { before, next }: { before: VdiskVersions; next: VdiskVersions },
): Promise<void> {
  const known = new Map(before.versions.map((version) => [version.id, version]))
  for (const version of next.versions) {
    const was = known.get(version.id)
    const data = was ? differences(versionFields, was, version) : {}
    if (Object.keys(data).length > 0)
      await db.vdiskVersion.update({
        where: ownRow({ organizationId }, version.id),
        data: data as Prisma.VdiskVersionUpdateInput,
        select: { id: true },
      })
  }
  const data = differences(choiceFields, before, next)
  if (Object.keys(data).length > 0)
    await db.vdisk.update({
      where: ownRow({ organizationId }, vdiskId),
      data: data as Prisma.VdiskUpdateInput,
      select: { id: true },
    })
}

const versionFields = ['state', 'releasedAt', 'sealedAt', 'sealAskedAt', 'manifestRoot'] as const
const choiceFields = ['defaultVersionId', 'overrideVersionId', 'pendingVersionId', 'maintenanceDeviceId'] as const

function differences<T extends object>(names: readonly (keyof T)[], before: T, after: T): Partial<T> {
  const changed: Partial<T> = {}
  for (const name of names) if (!isDeepStrictEqual(before[name], after[name])) changed[name] = after[name]
  return changed
}
