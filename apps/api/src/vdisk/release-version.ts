import type { z } from 'zod'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChanges } from '../events/record-change.ts'
import {
  changedVersionNow,
  changeVdiskVersions,
  changeVersion,
  conflict,
  type OpenVdisk,
  type OpenVersion,
} from './open-version.ts'
import type {
  ChangedVersion,
  cancelReleaseInput,
  clearOverrideInput,
  overrideInput,
  promoteInput,
  revertInput,
} from './version-schema.ts'

const releaseAheadMaxMs = 366 * 86_400_000

/**
 * A version in test becomes the default, now or at an instant to come; what runs goes on with what it booted. Throws `not_found`;
 * `invalid` for an instant that is over or too far; `conflict` for one that is not in test, or where another release is to come already.
 */
export function promoteVersion(
  context: ServiceContext,
  { releaseAt, ...seen }: z.output<typeof promoteInput>,
): Promise<ChangedVersion> {
  return changeVersion(context, seen, async (open) => {
    const { version, access, resolved, now } = open
    requirePromotable(open)
    const at = releaseAt ? new Date(releaseAt) : null
    if (at && at <= now)
      throw new AppError('invalid', { public: 'The release lies in the past: leave it out for now.' })
    if (at && at.getTime() > now.getTime() + releaseAheadMaxMs)
      throw new AppError('invalid', { public: 'A release is at most a year ahead.' })
    if (at && resolved.pending && access !== 'pending')
      throw conflict(
        `Version ${resolved.pending.version.number} is to be released at ${resolved.pending.at.toISOString()}: take that back first.`,
      )
    const isAwaited = open.vdisk.pendingVersionId === version.id
    await setVersion(context, version.id, { state: 'released', releasedAt: at ?? now })
    await setVdisk(
      context,
      open,
      at
        ? { pendingVersionId: version.id }
        : {
            defaultVersionId: version.id,
            ...(isAwaited ? { pendingVersionId: null } : {}),
          },
    )
    await record(context, open, [
      {
        version: open,
        before: { state: version.state, releasedAt: version.releasedAt },
        after: { state: 'released', releasedAt: at ?? now },
      },
      at
        ? {
            before: { pending: resolved.pending?.version.number ?? null },
            after: { pending: version.number },
          }
        : { before: { default: resolved.default?.number ?? null }, after: { default: version.number } },
    ])
    return changedVersionNow(context, version.id)
  })
}

/** Throws `conflict` with what the version is instead. */
export function requirePromotable({ version, access }: Pick<OpenVersion, 'version' | 'access'>): void {
  const { number, state, sealedAt } = version
  if (access === 'maintenance') throw conflict(`Version ${number} is in maintenance: seal it first, and try it out.`)
  if (sealedAt === null) throw conflict(`Version ${number} is being made: wait until that is done.`)
  if (access === 'default') throw conflict(`Version ${number} is the default already.`)
  if (state === 'released' && access !== 'pending')
    throw conflict(`Version ${number} was released before: revert to it.`)
}

/** The release to come is taken back: the version is in test again. Throws `not_found`; `conflict` where none is to come. */
export function cancelRelease(
  context: ServiceContext,
  seen: z.output<typeof cancelReleaseInput>,
): Promise<ChangedVersion> {
  return changeVdiskVersions(context, seen, async (open) => {
    const { pending } = open.resolved
    if (!pending) throw conflict('No release is to come for this vDisk.')
    const { id, number } = pending.version
    await setVersion(context, id, { state: 'test', releasedAt: null })
    await setVdisk(context, open, { pendingVersionId: null })
    await record(context, open, [
      {
        version: { version: pending.version },
        before: { state: 'released', releasedAt: pending.at },
        after: { state: 'test', releasedAt: null },
      },
      { before: { pending: number }, after: { pending: null } },
    ])
    return changedVersionNow(context, id)
  })
}

/**
 * A version that was released before is the default again, with its kernel, initramfs and command line. Throws `not_found`; `conflict` for
 * the default itself, and for one that was never released.
 */
export function revertVersion(context: ServiceContext, seen: z.output<typeof revertInput>): Promise<ChangedVersion> {
  return changeVersion(context, seen, async (open) => {
    const { version, resolved } = open
    requireReleased(open)
    if (resolved.default?.id === version.id) throw conflict(`Version ${version.number} is the default already.`)
    await setVdisk(context, open, { defaultVersionId: version.id })
    await record(context, open, [
      { before: { default: resolved.default?.number ?? null }, after: { default: version.number } },
    ])
    return changedVersionNow(context, version.id)
  })
}

/** Throws `conflict` with what the version is instead. */
export function requireReleased({ version, access }: Pick<OpenVersion, 'version' | 'access'>): void {
  const { number, state, sealedAt } = version
  if (access === 'pending') throw conflict(`Version ${number} is to be released yet: promote it now instead.`)
  if (state !== 'released' || sealedAt === null)
    throw conflict(`Version ${number} was never released: promote it instead.`)
}

/**
 * Production devices boot this version in place of the default until the override is taken back. Throws `not_found`; `conflict` for a
 * version that was never released, and for the override itself.
 */
export function overrideVersion(
  context: ServiceContext,
  seen: z.output<typeof overrideInput>,
): Promise<ChangedVersion> {
  return changeVersion(context, seen, async (open) => {
    const { version, resolved } = open
    requireReleased(open)
    if (resolved.override?.id === version.id) throw conflict(`Version ${version.number} is the override already.`)
    await setVdisk(context, open, { overrideVersionId: version.id })
    await record(context, open, [
      { before: { override: resolved.override?.number ?? null }, after: { override: version.number } },
    ])
    return changedVersionNow(context, version.id)
  })
}

/** Throws `not_found`; `conflict` where there is none. @returns what had been the override */
export function clearOverride(
  context: ServiceContext,
  seen: z.output<typeof clearOverrideInput>,
): Promise<ChangedVersion> {
  return changeVdiskVersions(context, seen, async (open) => {
    const { override } = open.resolved
    if (!override) throw conflict('This vDisk has no override.')
    await setVdisk(context, open, { overrideVersionId: null })
    await record(context, open, [{ before: { override: override.number }, after: { override: null } }])
    return changedVersionNow(context, override.id)
  })
}

interface Recorded {
  /** Absent: of the vDisk. */
  version?: { version: { id: string; number: number } }
  before: Record<string, unknown>
  after: Record<string, unknown>
}

async function record(context: ServiceContext, { vdisk, place }: OpenVdisk, changes: Recorded[]): Promise<void> {
  await recordChanges(
    context,
    changes.map(({ version, before, after }) => ({
      ...(version
        ? { kind: 'version', id: version.version.id, name: `${vdisk.name} version ${version.version.number}` }
        : { kind: 'vdisk', id: vdisk.id, name: vdisk.name }),
      place,
      before,
      after,
    })),
  )
}

async function setVersion(
  { db, actor: { organizationId } }: ServiceContext,
  id: string,
  fields: { state: 'test' | 'released'; releasedAt: Date | null },
): Promise<void> {
  await db.vdiskVersion.update({
    where: ownRow({ organizationId }, id),
    data: fields,
    select: { id: true },
  })
}

async function setVdisk(
  { db, actor: { organizationId } }: ServiceContext,
  { vdisk }: OpenVdisk,
  fields: { defaultVersionId?: string; overrideVersionId?: string | null; pendingVersionId?: string | null },
): Promise<void> {
  await db.vdisk.update({
    where: ownRow({ organizationId }, vdisk.id),
    data: fields,
    select: { id: true },
  })
}
