import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { byName } from '../context/keyset.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { askStore, edgesHolding } from '../store/public.ts'
import { nextVersionNumber } from './next-number.ts'
import { changedVersionNow, changeVersion, conflict, nextVersions, type OpenVersion } from './open-version.ts'
import { runningDevices } from './tally-devices.ts'
import { writeVersions } from './version-facts.ts'
import type {
  ChangedVersion,
  discardMaintenanceInput,
  sealInput,
  startMaintenanceInput,
  VersionWithJobs,
} from './version-schema.ts'

/**
 * Begins the vDisk's next version above a sealed one: the named device writes it from its next boot on. Throws
 * `not_found`; `invalid` for a device that does not boot the vDisk; `conflict` where it is no maintenance device, where
 * a version is in maintenance already (which, and who writes it), or where the version below is not in the store.
 */
export function startMaintenance(
  context: ServiceContext,
  { deviceId, note, ...seen }: z.output<typeof startMaintenanceInput>,
): Promise<ChangedVersion> {
  return changeVersion(context, seen, async (open) => {
    const { vdisk, place, version: parent, versions, resolved, now } = open
    const { db, actor } = context
    const { organizationId } = actor
    const writerName = resolved.maintenance ? await deviceName(context, versions.maintenanceDeviceId) : null
    const step = { kind: 'startMaintenance', versionId: parent.id, writerName } as const
    nextVersions(open, step)
    const device = await requireWriter(context, { deviceId, vdiskId: vdisk.id })
    const number = await nextVersionNumber(db, { organizationId, vdiskId: vdisk.id })
    const id = randomUUID()
    await db.vdiskVersion.create({
      data: {
        organizationId,
        id,
        vdiskId: vdisk.id,
        number,
        note,
        createdAt: now,
        state: 'maintenance',
        sealedAt: null,
        parentVersionId: parent.id,
        sizeBytes: parent.sizeBytes,
        diskPath: `versions/${id}`,
        commandLine: parent.commandLine,
      },
      select: { id: true },
    })
    const next = nextVersions(open, { ...step, begun: { id, number, deviceId: device.id } })
    await writeVersions(db, { organizationId, vdiskId: vdisk.id }, { before: versions, next })
    const made = await changedVersionNow(context, id)
    await recordChange(context, {
      kind: 'version',
      id,
      name: made.name,
      place,
      before: null,
      after: { number, state: 'maintenance', above: parent.number, writtenBy: device.name, note },
    })
    return made
  })
}

async function requireWriter(
  { db, actor: { organizationId } }: ServiceContext,
  { deviceId, vdiskId }: { deviceId: string; vdiskId: string },
): Promise<{ id: string; name: string }> {
  const device = await db.device.findUnique({
    where: ownRow({ organizationId }, deviceId),
    select: {
      id: true,
      name: true,
      deviceType: true,
      vdiskId: true,
      collection: { select: { vdiskId: true } },
    },
  })
  if (!device) throw new AppError('not_found', { public: 'There is no such device.' })
  if ((device.vdiskId ?? device.collection.vdiskId) !== vdiskId)
    throw new AppError('invalid', {
      public: `${device.name} does not boot this vDisk: give it the vDisk first.`,
    })
  if (device.deviceType !== 'maintenance')
    throw conflict(`${device.name} is a ${device.deviceType} device: make it a maintenance device first.`)
  return device
}

/**
 * Asks the edge that holds what was written to make a version of it; once that is done, the version is in test. Throws
 * `not_found`; `conflict` while its device runs (which), while it is being sealed already, or where no edge holds what
 * was written.
 */
export function sealVersion(
  context: ServiceContext,
  { bootFiles, ...seen }: z.output<typeof sealInput>,
): Promise<VersionWithJobs> {
  return changeVersion(context, seen, async (open) => {
    const { version, vdisk, place, versions, now } = open
    const { db, actor } = context
    const { organizationId } = actor
    const next = nextVersions(open, { kind: 'seal', versionId: version.id })
    await requireResting(context, open)
    const edgeId = await edgeOfLayer(context, open)
    await writeVersions(db, { organizationId, vdiskId: vdisk.id }, { before: versions, next })
    const jobId = await askStore(context, {
      edgeId,
      kind: 'seal',
      vdiskId: vdisk.id,
      versionId: version.id,
      bootFiles: bootFiles === 'image' ? null : bootFiles,
    })
    const changed = await changedVersionNow(context, version.id)
    await recordChange(context, {
      kind: 'version',
      id: version.id,
      name: changed.name,
      place,
      before: { sealAskedAt: null },
      after: { sealAskedAt: now },
    })
    return { ...changed, jobIds: [jobId] }
  })
}

/** Throws `conflict` for a version whose device runs. */
async function requireResting(context: ServiceContext, { version }: OpenVersion): Promise<void> {
  const running = await runningDevices(context, { versionId: version.id })
  if (running.count > 0)
    throw conflict(`${running.names.join(', ')} still runs from version ${version.number}: shut it down first.`)
}

/** Returns the edge that reported the layer; before a report, the only edge of the device's site. Throws `conflict`. */
async function edgeOfLayer(context: ServiceContext, { version, versions }: OpenVersion): Promise<string> {
  const { db, actor } = context
  const { organizationId } = actor
  const holding = await edgesHolding(db, { organizationId, versionId: version.id }, { isLayer: true })
  if (holding[0]) return holding[0].edgeId
  const device = versions.maintenanceDeviceId
  const edges = await db.edge.findMany({
    where: {
      organizationId,
      revokedAt: null,
      site: { deletionId: null, devices: { some: { organizationId, id: device ?? version.id } } },
    },
    take: 2,
    select: { id: true },
  })
  const [only, second] = edges
  if (only && !second) return only.id
  const writer = (await deviceName(context, device)) ?? 'its device'
  throw conflict(
    `No edge has said that it holds what was written to version ${version.number}: boot ${writer} once, or discard the version.`,
  )
}

/**
 * Edges that reported the layer; and edges that may have it and are away: of the device's site, with the version below
 * it in their stores.
 */
async function edgesThatMayHold(
  { db, actor: { organizationId } }: ServiceContext,
  { version, versions }: OpenVersion,
): Promise<string[]> {
  const edges = await db.edge.findMany({
    where: {
      organizationId,
      revokedAt: null,
      OR: [
        { storedVersions: { some: { organizationId, versionId: version.id, isLayer: true } } },
        {
          site: { devices: { some: { organizationId, id: versions.maintenanceDeviceId ?? version.id } } },
          storedVersions: { some: { organizationId, versionId: version.parentVersionId ?? version.id } },
        },
      ],
    },
    orderBy: byName,
    select: { id: true },
  })
  return edges.map(({ id }) => id)
}

/** The writes are lost, and so is the version; its number is not reused. Throws like `sealVersion`. */
export function discardMaintenance(
  context: ServiceContext,
  seen: z.output<typeof discardMaintenanceInput>,
): Promise<{ name: string }> {
  return changeVersion(context, seen, async (open) => {
    const { version, vdisk, place, versions } = open
    const { db, actor } = context
    const { organizationId } = actor
    const next = nextVersions(open, { kind: 'discard', versionId: version.id })
    await requireResting(context, open)
    const name = `${vdisk.name} version ${version.number}`
    for (const edgeId of await edgesThatMayHold(context, open))
      await askStore(context, { edgeId, kind: 'delete', vdiskId: vdisk.id, versionId: version.id })
    await db.vdiskVersion.delete({ where: ownRow(actor, version.id), select: { id: true } })
    await writeVersions(db, { organizationId, vdiskId: vdisk.id }, { before: versions, next })
    await recordChange(context, {
      kind: 'version',
      id: version.id,
      name,
      place,
      before: { number: version.number, state: 'maintenance' },
      after: null,
    })
    return { name }
  })
}

async function deviceName(
  { db, actor: { organizationId } }: ServiceContext,
  id: string | null,
): Promise<string | null> {
  if (id === null) return null
  const where = ownRow({ organizationId }, id)
  return (await db.device.findUnique({ where, select: { name: true } }))?.name ?? null
}
