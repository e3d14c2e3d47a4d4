import type { DeviceType } from '../object-fields.ts'

/**
 * Which device gets which version of a vDisk, and what people see a version as. Pure: the desired state, the pages and
 * the events all ask here. docs/guides/versions.md has the same rules in words.
 */

/** How a version is stored. */
export type VersionState = 'maintenance' | 'test' | 'released'

/** How people see it; null: released before, or being created. */
type VersionAccess = 'maintenance' | 'test' | 'pending' | 'default' | 'override' | null

export interface VersionFacts {
  id: string
  number: number
  state: VersionState
  /** Null: since before that was kept, or not released. */
  releasedAt: Date | null
  /** Null: written, or being made yet. */
  sealedAt: Date | null
  /** Nobody writes it any more once its sealing was requested. */
  sealAskedAt: Date | null
  /** An empty disk, into which a machine's disk is captured: no device boots it. */
  isBlank?: boolean
}

/** A vDisk's choices among its versions. An id of a missing version counts as null. */
export interface VersionChoices {
  defaultVersionId: string | null
  overrideVersionId: string | null
  pendingVersionId: string | null
  maintenanceDeviceId: string | null
}

/** Each is null if there is none. */
export interface ResolvedVersions<V extends VersionFacts = VersionFacts> {
  /** The version that production devices boot. */
  production: V | null
  /** The version that they boot without an override. */
  default: V | null
  override: V | null
  /** Its instant is still to come. */
  pending: { version: V; at: Date } | null
  /** The version that test devices boot. */
  test: V | null
  /** Also while it is being sealed. */
  maintenance: V | null
  /** The device that may write it now. */
  writerDeviceId: string | null
}

/** @param versions of one vDisk, in any order, without those in the trash */
export function resolveVersions<V extends VersionFacts>(
  choices: VersionChoices,
  versions: readonly V[],
  now: Date,
): ResolvedVersions<V> {
  const released = versions.filter(({ state, sealedAt }) => state === 'released' && sealedAt !== null)
  const releasedOf = (id: string | null) => released.find((version) => version.id === id) ?? null
  const awaited = releasedOf(choices.pendingVersionId)
  const isDue = awaited !== null && (awaited.releasedAt === null || awaited.releasedAt <= now)
  const pending = awaited?.releasedAt && !isDue ? { version: awaited, at: awaited.releasedAt } : null
  const outNow = released.filter((version) => version !== pending?.version)
  const byDefault =
    (isDue ? awaited : null) ?? outNow.find(({ id }) => id === choices.defaultVersionId) ?? newestOf(outNow)
  const override = outNow.find(({ id }) => id === choices.overrideVersionId) ?? null
  const production = override ?? byDefault
  // Devices do not return to a version that was left in test once a newer one was promoted.
  const isAhead = ({ number }: V) => byDefault === null || number > byDefault.number
  const tested = versions.filter(
    (version) =>
      version === pending?.version ||
      (version.state === 'test' && version.sealedAt !== null && !version.isBlank && isAhead(version)),
  )
  const maintenance = newestOf(versions.filter(({ state }) => state === 'maintenance'))
  return {
    production,
    default: byDefault,
    override,
    pending,
    maintenance,
    test: newestOf(tested) ?? production,
    writerDeviceId: maintenance && maintenance.sealAskedAt === null ? choices.maintenanceDeviceId : null,
  }
}

/** Returns the version of a device's next boot; null: none. */
export function versionFor<V extends VersionFacts>(
  resolved: ResolvedVersions<V>,
  device: { id: string; deviceType: DeviceType },
): V | null {
  switch (device.deviceType) {
    case 'production':
      return resolved.production
    case 'test':
      return resolved.test
    case 'maintenance':
      return writes(resolved, device) ? resolved.maintenance : resolved.test
  }
}

/** Returns whether the device gets the maintenance version to write it. */
export function writes(
  { writerDeviceId }: ResolvedVersions,
  { id, deviceType }: { id: string; deviceType: DeviceType },
): boolean {
  return deviceType === 'maintenance' && writerDeviceId === id
}

/** Returns how people see one of the resolved versions. An override that is also the default is an override. */
export function accessOf(resolved: ResolvedVersions, version: VersionFacts): VersionAccess {
  if (version.state === 'maintenance') return 'maintenance'
  if (version.sealedAt === null) return null
  if (version.state === 'test') return 'test'
  if (resolved.override?.id === version.id) return 'override'
  if (resolved.pending?.version.id === version.id) return 'pending'
  return resolved.default?.id === version.id ? 'default' : null
}

function newestOf<V extends VersionFacts>(versions: readonly V[]): V | null {
  let newest: V | null = null
  for (const version of versions) if (newest === null || version.number > newest.number) newest = version
  return newest
}
