import {
  accessOf,
  type ResolvedVersions,
  resolveVersions,
  type VersionChoices,
  type VersionFacts,
  type VersionState,
} from '../rules/device/version-access.ts'

/**
 * The state machine of a vDisk's versions: its steps, when and why each is refused, and the resulting versions. Pure:
 * services carry out its result, the preview shows it, and the API's `allowedSteps` come from it.
 * docs/guides/versions.md describes it in words. Invariant: at most one version is the default, one the override, one
 * pending and one in maintenance.
 */

/** The actions of people on a version. The first that is allowed is usually the next. */
export const versionSteps = [
  'seal',
  'discard',
  'promote',
  'cancelRelease',
  'clearOverride',
  'revert',
  'startMaintenance',
  'override',
  'merge',
  'delete',
] as const
export type StepName = (typeof versionSteps)[number]

interface StepVersion extends VersionFacts {
  /** Null: it is a plain file, or not sealed. */
  manifestRoot: Uint8Array | null
}

/** A vDisk's versions, without those in the trash, and the vDisk's version choices. */
export interface VdiskVersions extends VersionChoices {
  versions: readonly StepVersion[]
}

interface NewVersion {
  id: string
  number: number
}
interface MadeVersion extends NewVersion {
  state: 'test' | 'released'
}

export type VersionStep =
  | { kind: 'promote'; versionId: string /** Absent or null: now. */; releaseAt?: Date | null }
  | {
      kind: 'startMaintenance'
      versionId: string
      /** The device that writes the version in maintenance; null: it is gone. */
      writerName?: string | null
      /** Absent: only asked whether it is allowed. */
      begun?: NewVersion & { deviceId: string }
    }
  | { kind: 'seal' | 'discard' | 'merge' | 'delete'; versionId: string }
  | { kind: 'revert' | 'override'; versionId: string }
  | { kind: 'cancelRelease' | 'clearOverride' }
  /** A version that is whole from the start. */
  | { kind: 'register'; version: MadeVersion }
  /** A version that an edge is asked to make. */
  | { kind: 'make'; version: MadeVersion }
  /** An edge has sealed, merged, imported or adopted it. */
  | { kind: 'finish'; versionId: string; manifestRoot: Uint8Array }
  /** The instant of the release has come. Every other step does this first. */
  | { kind: 'release' }

interface Refusal {
  code: 'conflict' | 'invalid'
  /** The sentence for the caller. */
  text: string
}
type Applied = { next: VdiskVersions; refusal?: never } | { next?: never; refusal: Refusal }

const releaseAheadMaxMs = 366 * 86_400_000

/** Takes a step, or returns the reason for its refusal. Throws for a version that is not among them. */
export function apply(versions: VdiskVersions, step: VersionStep, now: Date): Applied {
  const open = openVersions(versions, now)
  const refusal = refusalOf(open, step)
  return refusal ? { refusal } : { next: nextOf(open, step) }
}

/** The steps that `apply` takes, by the id of the version. */
export function allowedSteps(versions: VdiskVersions, now: Date): Map<string, StepName[]> {
  const open = openVersions(versions, now)
  return new Map(
    versions.versions.map(({ id }) => {
      const isAllowed = (name: StepName) => {
        const step = stepOf(open, name, id)
        return step !== null && refusalOf(open, step) === null
      }
      return [id, versionSteps.filter(isAllowed)]
    }),
  )
}

/** Returns a step as a person who looks at a version would take it; null if it concerns another version. */
function stepOf({ resolved }: Open, name: StepName, versionId: string): VersionStep | null {
  if (name === 'cancelRelease') return resolved.pending?.version.id === versionId ? { kind: name } : null
  if (name === 'clearOverride') return resolved.override?.id === versionId ? { kind: name } : null
  return { kind: name, versionId }
}

interface Open {
  /** With a release that is due. */
  versions: VdiskVersions
  resolved: ResolvedVersions<StepVersion>
  /** Before it was. */
  isDue: boolean
  now: Date
}

function openVersions(versions: VdiskVersions, now: Date): Open {
  const due = versions.versions.find(
    ({ id, releasedAt }) => id === versions.pendingVersionId && releasedAt !== null && releasedAt <= now,
  )
  const settled = due ? { ...versions, defaultVersionId: due.id, pendingVersionId: null } : versions
  return { versions: settled, resolved: resolveVersions(settled, settled.versions, now), isDue: due !== undefined, now }
}

function refusalOf(open: Open, step: VersionStep): Refusal | null {
  if (step.kind === 'promote' && step.releaseAt) {
    const text = badInstant(step.releaseAt, open.now)
    if (text && !conflictOf(open, step)) return { code: 'invalid', text }
  }
  const text = conflictOf(open, step)
  return text === null ? null : { code: 'conflict', text }
}

function badInstant(releaseAt: Date, now: Date): string | null {
  if (releaseAt <= now) return 'The release lies in the past: leave it out for now.'
  const isTooFar = releaseAt.getTime() > now.getTime() + releaseAheadMaxMs
  return isTooFar ? 'A release is at most a year ahead.' : null
}

function conflictOf(open: Open, step: VersionStep): string | null {
  const { resolved, isDue } = open
  switch (step.kind) {
    case 'startMaintenance':
      return maintained(open, step) ?? notInStore(versionOf(open, step.versionId), 'maintained')
    case 'seal':
    case 'discard':
      return notWritten(open, versionOf(open, step.versionId))
    case 'promote':
      return notPromotable(open, step)
    case 'cancelRelease':
      return resolved.pending ? null : 'No release is to come for this vDisk.'
    case 'revert':
      return notReleased(open, versionOf(open, step.versionId)) ?? chosenAlready(open, step, 'default')
    case 'override':
      return notReleased(open, versionOf(open, step.versionId)) ?? chosenAlready(open, step, 'override')
    case 'clearOverride':
      return resolved.override ? null : 'This vDisk has no override.'
    case 'merge':
      return notInStore(versionOf(open, step.versionId), 'merged')
    case 'delete':
      return notDeletable(open, versionOf(open, step.versionId))
    case 'finish': {
      const { number, sealedAt } = versionOf(open, step.versionId)
      return sealedAt === null ? null : `Version ${number} is sealed already.`
    }
    case 'release':
      return isDue ? null : 'No release is due.'
    case 'register':
    case 'make':
      return null
  }
}

function maintained(
  { resolved: { maintenance } }: Open,
  { writerName }: Extract<VersionStep, { kind: 'startMaintenance' }>,
): string | null {
  if (!maintenance) return null
  const writer = writerName ? `: ${writerName} writes it` : ''
  return `Version ${maintenance.number} is in maintenance already${writer}. Seal or discard it first.`
}

function notWritten({ resolved }: Open, version: StepVersion): string | null {
  if (accessOf(resolved, version) !== 'maintenance') return `Version ${version.number} is not in maintenance.`
  return version.sealAskedAt ? `Version ${version.number} is being sealed already.` : null
}

function notPromotable(open: Open, { versionId, releaseAt }: Extract<VersionStep, { kind: 'promote' }>): string | null {
  const { resolved } = open
  const version = versionOf(open, versionId)
  const { number, state, sealedAt, isBlank } = version
  const access = accessOf(resolved, version)
  if (isBlank) return `Version ${number} is an empty disk, into which a disk is captured: nothing boots from it.`
  if (access === 'maintenance') return `Version ${number} is in maintenance: seal it first, and try it out.`
  if (sealedAt === null) return `Version ${number} is being made: wait until that is done.`
  if (access === 'default') return alreadyText(number, 'default')
  if (state === 'released' && access !== 'pending') return `Version ${number} was released before: revert to it.`
  const { pending } = resolved
  return releaseAt && !badInstant(releaseAt, open.now) && pending && access !== 'pending'
    ? `Version ${pending.version.number} is to be released at ${pending.at.toISOString()}: take that back first.`
    : null
}

function notReleased({ resolved }: Open, version: StepVersion): string | null {
  const { number, state, sealedAt } = version
  if (accessOf(resolved, version) === 'pending')
    return `Version ${number} is to be released yet: promote it now instead.`
  return state === 'released' && sealedAt !== null ? null : `Version ${number} was never released: promote it instead.`
}

function chosenAlready(open: Open, { versionId }: { versionId: string }, as: 'default' | 'override'): string | null {
  return open.resolved[as]?.id === versionId ? alreadyText(versionOf(open, versionId).number, as) : null
}

function alreadyText(number: number, as: 'default' | 'override'): string {
  return `Version ${number} is the ${as} already.`
}

function notInStore({ number, sealedAt, manifestRoot }: StepVersion, verb: 'maintained' | 'merged'): string | null {
  if (sealedAt === null) return `Version ${number} is not sealed yet: it can be ${verb} once it no longer changes.`
  return manifestRoot === null
    ? `Version ${number} is a plain file, which cannot be ${verb}: import it into the edges’ store as a version first.`
    : null
}

/** Users of a sealed version (`holderOf`, devices, menus, jobs) are checked when it is deleted, and named there. */
function notDeletable({ resolved }: Open, version: StepVersion): string | null {
  const { number, sealedAt } = version
  if (accessOf(resolved, version) === 'maintenance') return `Version ${number} is in maintenance: discard it instead.`
  return sealedAt === null ? `Version ${number} is being made: wait until that is done.` : null
}

/** Returns the role in which its vDisk holds the version; null: none. */
export function holderOf(resolved: ResolvedVersions, version: VersionFacts): string | null {
  switch (accessOf(resolved, version)) {
    case 'override':
      return 'override'
    case 'pending':
      return 'release to come'
    case 'maintenance':
      return 'maintenance'
    case 'test':
    case 'default':
    case null:
      return null
  }
}

function nextOf(open: Open, step: VersionStep): VdiskVersions {
  const { versions, resolved, now } = open
  switch (step.kind) {
    case 'startMaintenance':
      return step.begun ? begin(versions, step.begun) : versions
    case 'seal':
      return changed(versions, step.versionId, { sealAskedAt: now })
    case 'discard':
      return { ...without(versions, step.versionId), maintenanceDeviceId: null }
    case 'promote':
      return promote(open, step)
    case 'cancelRelease': {
      const id = resolved.pending?.version.id ?? ''
      return { ...changed(versions, id, { state: 'test', releasedAt: null }), pendingVersionId: null }
    }
    case 'revert':
      return { ...versions, defaultVersionId: step.versionId }
    case 'override':
      return { ...versions, overrideVersionId: step.versionId }
    case 'clearOverride':
      return { ...versions, overrideVersionId: null }
    case 'delete':
      return without(versions, step.versionId)
    case 'register':
      return released(added(versions, step.version, { sealedAt: now, state: step.version.state }), step.version.id, now)
    case 'make':
      return added(versions, step.version, { sealedAt: null, state: step.version.state })
    case 'finish':
      return finish(open, step)
    case 'merge':
    case 'release':
      return versions
  }
}

function begin(versions: VdiskVersions, { deviceId, ...version }: NewVersion & { deviceId: string }): VdiskVersions {
  const above = added(versions, version, { sealedAt: null, state: 'maintenance' })
  return { ...above, maintenanceDeviceId: deviceId }
}

function promote(
  { versions, now }: Open,
  { versionId, releaseAt }: Extract<VersionStep, { kind: 'promote' }>,
): VdiskVersions {
  const out = changed(versions, versionId, { state: 'released', releasedAt: releaseAt ?? now })
  if (releaseAt) return { ...out, pendingVersionId: versionId }
  const pendingVersionId = versions.pendingVersionId === versionId ? null : versions.pendingVersionId
  return { ...out, defaultVersionId: versionId, pendingVersionId }
}

function finish(open: Open, { versionId, manifestRoot }: Extract<VersionStep, { kind: 'finish' }>): VdiskVersions {
  const { versions, now } = open
  const isWritten = versionOf(open, versionId).state === 'maintenance'
  const sealed = changed(versions, versionId, { sealedAt: now, sealAskedAt: null, manifestRoot })
  if (isWritten) return { ...changed(sealed, versionId, { state: 'test' }), maintenanceDeviceId: null }
  return released(sealed, versionId, now)
}

/** If a person has chosen a default, a version released at once replaces it; otherwise the newest is the default. */
function released(versions: VdiskVersions, versionId: string, now: Date): VdiskVersions {
  if (versions.versions.find(({ id }) => id === versionId)?.state !== 'released') return versions
  const defaultVersionId = versions.defaultVersionId === null ? null : versionId
  return { ...changed(versions, versionId, { releasedAt: now }), defaultVersionId }
}

function added(
  versions: VdiskVersions,
  { id, number }: NewVersion,
  { state, sealedAt }: { state: VersionState; sealedAt: Date | null },
): VdiskVersions {
  const version = { id, number, state, sealedAt, releasedAt: null, sealAskedAt: null, manifestRoot: null }
  return { ...versions, versions: [...versions.versions, version] }
}

function changed(versions: VdiskVersions, versionId: string, fields: Partial<StepVersion>): VdiskVersions {
  return {
    ...versions,
    versions: versions.versions.map((version) => (version.id === versionId ? { ...version, ...fields } : version)),
  }
}

function without(versions: VdiskVersions, versionId: string): VdiskVersions {
  return { ...versions, versions: versions.versions.filter(({ id }) => id !== versionId) }
}

function versionOf({ versions }: Open, versionId: string): StepVersion {
  const version = versions.versions.find(({ id }) => id === versionId)
  if (!version) throw new Error('a step is about a version of its vDisk')
  return version
}
