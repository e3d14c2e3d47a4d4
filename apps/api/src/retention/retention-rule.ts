import { accessOf, type ResolvedVersions, type VersionFacts } from '../rules/device/version-access.ts'

/**
 * Which versions of a vDisk retention lets go, as far as the vDisk alone says it. Pure. What else needs a version
 * (devices, menus, jobs) is asked for the few that are left.
 */

export const keepReasons = ['unreleased', 'default', 'override', 'pending', 'protected', 'newest', 'used'] as const
export interface KeepReason {
  kind: (typeof keepReasons)[number]
  text: string
}

export interface RetainedVersion extends VersionFacts {
  isProtected: boolean
}

/** Returns why a version stays, by its id; null: nothing of the vDisk keeps it. */
export function keptVersions(
  versions: readonly RetainedVersion[],
  resolved: ResolvedVersions,
  keptReleases: number,
): Map<string, KeepReason | null> {
  const newest = new Set(lastReleased(versions, resolved).slice(0, keptReleases))
  return new Map(
    versions.map((version) => {
      const reason = reasonOf(version, resolved)
      return [version.id, reason ?? (newest.has(version) ? newestReason(keptReleases) : null)]
    }),
  )
}

/** The one that was released last is the first; those from before releases were recorded come in the end. */
function lastReleased(versions: readonly RetainedVersion[], resolved: ResolvedVersions): RetainedVersion[] {
  const isReleased = (version: RetainedVersion) =>
    version.state === 'released' && version.sealedAt !== null && accessOf(resolved, version) !== 'pending'
  const timeOf = ({ releasedAt }: RetainedVersion) => releasedAt?.getTime() ?? Number.NEGATIVE_INFINITY
  return versions.filter(isReleased).sort((a, b) => compare(timeOf(b), timeOf(a)) || b.number - a.number)
}

/** Differences of infinite numbers are none. */
function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function reasonOf(version: RetainedVersion, resolved: ResolvedVersions): KeepReason | null {
  const access = accessOf(resolved, version)
  if (version.sealedAt === null) return { kind: 'unreleased', text: 'It is being written or made.' }
  if (version.state !== 'released') return { kind: 'unreleased', text: 'It was not released yet.' }
  if (access === 'override') return { kind: 'override', text: 'It is the override.' }
  if (access === 'pending') return { kind: 'pending', text: 'It is to be released.' }
  // With an override, too.
  if (access === 'default' || resolved.default?.id === version.id)
    return { kind: 'default', text: 'Devices boot it by default.' }
  return version.isProtected ? { kind: 'protected', text: 'It is protected against deletion.' } : null
}

function newestReason(keptReleases: number): KeepReason {
  const text = keptReleases === 1 ? 'It was released last.' : `It is one of the last ${keptReleases} released versions.`
  return { kind: 'newest', text }
}
