import type { DeviceType } from './object-fields.ts'

/**
 * Which device gets which version of a vDisk, and what people see a version as. Pure: the desired state, the pages and
 * the events all ask here. docs/guides/versions.md has the same rules in words.
 */

/** How a version is kept. */
export type VersionState = 'maintenance' | 'test' | 'released'

/** How people see it; null: released before, or one that is being made. */
type VersionAccess = 'maintenance' | 'test' | 'pending' | 'default' | 'override' | null

export interface VersionFacts {
  id: string
  number: number
  state: VersionState
  /** Null: since before that was kept, or not released. */
  releasedAt: Date | null
  /** Null: written, or being made yet. */
  sealedAt: Date | null
  /** Nobody writes it any more once its sealing was asked for. */
  sealAskedAt: Date | null
}

/** What a vDisk says of its versions. An id of a version that is not there counts as null. */
export interface VersionChoices {
  defaultVersionId: string | null
  overrideVersionId: string | null
  pendingVersionId: string | null
  maintenanceDeviceId: string | null
}

/** Each is null where there is none. */
export interface ResolvedVersions<V extends VersionFacts = VersionFacts> {
  /** What production devices boot. */
  production: V | null
  /** What they boot without an override. */
  default: V | null
  override: V | null
  /** Its instant is still to come. */
  pending: { version: V; at: Date } | null
  /** What test devices boot. */
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
  // One that was left in test is not what devices go back to once a newer one was promoted.
  const isAhead = ({ number }: V) => byDefault === null || number > byDefault.number
  const tested = versions.filter(
    (version) =>
      version === pending?.version || (version.state === 'test' && version.sealedAt !== null && isAhead(version)),
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

/** What a device boots next; null: nothing. */
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

/** Whether the device gets the maintenance version to write it. */
export function writes(
  { writerDeviceId }: ResolvedVersions,
  { id, deviceType }: { id: string; deviceType: DeviceType },
): boolean {
  return deviceType === 'maintenance' && writerDeviceId === id
}

/** How people see a version of those that were resolved. An override that is the default, too, is an override. */
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
