import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { emit } from '../events/event-bus.ts'
import { cancelStoreJob } from '../store-job/public.ts'
import { discardMaintenance, removeVdisk, runningDevices } from '../vdisk/public.ts'
import { type CaptureRow, hourMs, toState } from './capture-row.ts'
import { removeBlanks } from './make-blank.ts'
import { restoreDevice } from './point-device.ts'
import type { CaptureState } from './schema.ts'

/** How captures end: as a version, or undone. */

/** How long a device may keep on writing what is to be discarded. */
const undoneWithinMs = 24 * hourMs
type End = Extract<CaptureState, 'done' | 'failed' | 'cancelled'>

/** The version is sealed. What only the capture needed goes. */
export async function finishCapture(context: ServiceContext, row: CaptureRow): Promise<void> {
  await restoreDevice(context, row)
  await removeBlanks(context, row)
  await endCapture(context, row, { state: 'done', reason: null })
}

/** The device boots by its own settings from now on; the rest is undone step by step. */
export async function beginUndo(
  context: ServiceContext,
  row: CaptureRow,
  { endsAs, reason }: { endsAs: 'failed' | 'cancelled'; reason: string | null },
): Promise<void> {
  await restoreDevice(context, row)
  await switchOff(context, row)
  const deadlineAt = new Date(context.clock().getTime() + undoneWithinMs)
  await toState(context, row, { state: 'undoing', endsAs, reason, deadlineAt })
}

/** How long a power order stays in the desired state: packages/proto/UPLINK.md. */
const orderValidMs = 60_000

/** Nothing of what the device still sends is needed: it is ordered to switch off, once. */
async function switchOff(context: ServiceContext, row: CaptureRow): Promise<void> {
  const { db, clock, actor } = context
  if (row.versionId === null || (await runningDevices(context, { versionId: row.versionId })).count === 0) return
  const requestedAt = clock()
  const expiresAt = new Date(requestedAt.getTime() + orderValidMs)
  const { organizationId, userId: requestedByUserId } = actor
  const { deviceId } = row
  await db.powerOrder.create({
    data: { organizationId, deviceId, order: 'power_off', requestedByUserId, requestedAt, expiresAt },
    select: { id: true },
  })
}

/** One step at a time, each in a transaction of its own: the edge deletes the upper version before the lower one. */
export async function undoStep(context: ServiceContext, row: CaptureRow): Promise<void> {
  if (context.clock() >= row.deadlineAt) return giveUpUndo(context, row)
  if ((await endJob(context, row)) === 'waits') return
  const version = await writtenVersion(context, row)
  if (version?.sealedAt) return finishCapture(context, row)
  if (version) {
    if ((await runningDevices(context, { versionId: version.id })).count > 0) return
    await discardMaintenance(context, { versionId: version.id, revision: version.revision })
    return
  }
  await removeBlanks(context, row)
  await removeNewVdisk(context, row)
  await endCapture(context, row, { state: row.endsAs === 'cancelled' ? 'cancelled' : 'failed', reason: row.reason })
}

async function endJob(context: ServiceContext, { jobId }: CaptureRow): Promise<'waits' | 'over'> {
  const { db, actor } = context
  const job =
    jobId && (await db.storeJob.findUnique({ where: ownRow(actor, jobId), select: { kind: true, state: true } }))
  if (!jobId || !job || (job.state !== 'queued' && job.state !== 'running')) return 'over'
  // A running seal copies nothing and is done at once.
  if (job.kind === 'seal' && job.state === 'running') return 'waits'
  await cancelStoreJob(context, jobId)
  return 'over'
}

export async function writtenVersion({ db, actor }: ServiceContext, { versionId, id }: CaptureRow) {
  return db.vdiskVersion.findUnique({
    where: ownRow(actor, versionId ?? id),
    select: { id: true, number: true, revision: true, sealedAt: true },
  })
}

async function removeNewVdisk(context: ServiceContext, { vdiskId, isNewVdisk }: CaptureRow): Promise<void> {
  if (!isNewVdisk) return
  const { db, actor } = context
  const vdisk = await db.vdisk.findUnique({
    where: ownRow(actor, vdiskId),
    select: { revision: true, versions: { take: 1, select: { id: true } }, devices: { take: 1, select: { id: true } } },
  })
  // Somebody uses it by now.
  if (!vdisk || vdisk.versions.length > 0 || vdisk.devices.length > 0) return
  await removeVdisk(context, { vdiskId, revision: vdisk.revision })
}

/** The device is still there after all that time, or its edge is not. */
async function giveUpUndo(context: ServiceContext, row: CaptureRow): Promise<void> {
  const version = await writtenVersion(context, row)
  const left = version ? ` Version ${version.number} could not be discarded: discard it on the vDisk’s page.` : ''
  const reason = `${row.reason ?? 'It was cancelled.'}${left}`
  await endCapture(context, row, { state: row.endsAs === 'cancelled' ? 'cancelled' : 'failed', reason })
}

async function endCapture(
  context: ServiceContext,
  row: CaptureRow,
  { state, reason }: { state: End; reason: string | null },
): Promise<void> {
  const { db, clock, actor } = context
  const now = clock()
  await toState(context, row, { state, reason, endedAt: now, jobId: null })
  const device = await db.device.findUnique({
    where: ownRow(actor, row.deviceId),
    select: { name: true, siteId: true, collectionId: true, site: { select: { farmId: true } } },
  })
  if (!device) return
  const { name, siteId, collectionId, site } = device
  const vdisk = await db.vdisk.findUnique({ where: ownRow(actor, row.vdiskId), select: { id: true, name: true } })
  const version = state === 'done' ? await writtenVersion(context, row) : null
  await emit('captureEnded', {
    db,
    now,
    organizationId: actor.organizationId,
    capture: { id: row.id, deviceId: row.deviceId, deviceName: name, state, reason, vdisk, version },
    place: { farmId: site.farmId, siteId, collectionId },
  })
}
