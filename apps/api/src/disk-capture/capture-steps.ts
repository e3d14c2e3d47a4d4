import { findBoot } from '../boot/public.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { discardMaintenance, runningDevices, sealVersion, startMaintenance } from '../vdisk/public.ts'
import { captureProblemOf } from './boot-text.ts'
import { type CaptureRow, deadlineOf, hourMs, remarkOf, toState } from './capture-row.ts'
import { makeBlank } from './make-blank.ts'
import { isPointed, pointDevice } from './point-device.ts'
import type { CaptureState } from './schema.ts'
import { beginUndo, finishCapture, undoStep, writtenVersion } from './undo-capture.ts'

/** The steps of a capture. Each looks at what jobs and boots have reported, and repeating it does no harm. */

/** A disk of 64 TiB at 110 MB/s. */
const copiedWithinMs = 7 * 24 * hourMs
/** The empty disks of one capture: of an unknown size, of the disk's size, and of a disk that was named. */
const blanksMax = 4

export async function captureStep(context: ServiceContext, row: CaptureRow): Promise<void> {
  switch (row.state as CaptureState) {
    case 'preparing':
      return prepareStep(context, row)
    case 'waiting':
    case 'copying':
      return bootStep(context, row)
    case 'asking':
      if (context.clock() >= row.deadlineAt) await fail(context, row, 'Nobody has answered in time.')
      return
    case 'sealing':
      return sealStep(context, row)
    case 'undoing':
      return undoStep(context, row)
    case 'done':
    case 'failed':
    case 'cancelled':
  }
}

export function fail(context: ServiceContext, row: CaptureRow, reason: string): Promise<void> {
  return beginUndo(context, row, { endsAs: 'failed', reason })
}

async function readJob({ db, actor }: ServiceContext, { id, jobId }: CaptureRow) {
  return db.storeJob.findUnique({
    where: ownRow(actor, jobId ?? id),
    select: { state: true, message: true, edge: { select: { name: true } } },
  })
}

/** The empty disk is made, and the device may write the version above it. */
async function prepareStep(context: ServiceContext, row: CaptureRow): Promise<void> {
  const job = await readJob(context, row)
  if (job?.state === 'queued' || job?.state === 'running') {
    const late = `${job.edge.name} did not make the empty disk in time.`
    return context.clock() < row.deadlineAt ? undefined : fail(context, row, late)
  }
  if (job?.state !== 'done')
    return fail(context, row, `The empty disk could not be made: ${job?.message ?? 'its job was cancelled'}.`)
  const blankId = row.blankIds.at(-1) ?? row.id
  const before = await writtenVersion(context, row)
  if (before) {
    // It is between two boots: the last one has failed, and the next one is to find the other version.
    if ((await runningDevices(context, { versionId: before.id })).count > 0) return
    await discardMaintenance(context, { versionId: before.id, revision: before.revision })
  }
  await pointDevice(context, row)
  const { db, actor } = context
  const vdisk = await db.vdisk.findUniqueOrThrow({ where: ownRow(actor, row.vdiskId), select: { revision: true } })
  const { id: versionId } = await startMaintenance(context, {
    versionId: blankId,
    vdiskRevision: vdisk.revision,
    deviceId: row.deviceId,
    note: row.note,
  })
  const deadlineAt = deadlineOf(context, row)
  await toState(context, row, {
    state: 'waiting',
    versionId,
    jobId: null,
    deadlineAt,
    progressBytes: 0n,
    progressAt: null,
  })
}

/** What the device's newest boot says. */
async function bootStep(context: ServiceContext, row: CaptureRow): Promise<void> {
  const { db, clock, actor } = context
  const version = await writtenVersion(context, row)
  if (!version) return fail(context, row, 'Somebody has discarded the version that the device writes.')
  if (version.sealedAt) return finishCapture(context, row)
  if (!(await isPointed(context, row)))
    return fail(context, row, 'Somebody has changed the type or the vDisk of the device meanwhile.')
  const device = await db.device.findUniqueOrThrow({
    where: ownRow(actor, row.deviceId),
    select: { name: true, lastBootId: true },
  })
  const last = device.lastBootId === null ? null : await findBoot({ db, actor }, device.lastBootId)
  const boot = last?.versionId === version.id ? last : null
  if (boot?.outcome === 'failed') return failedStep(context, row, boot)
  const isReady = boot?.outcome === 'ready' && row.state === 'copying'
  if (isReady && (await runningDevices(context, { versionId: version.id })).count === 0) {
    const late = 'The version could not be sealed in time.'
    return clock() < row.deadlineAt ? seal(context, row, row.bootFiles) : fail(context, row, late)
  }
  if (boot && (boot.outcome === null || boot.outcome === 'ready')) return copyStep(context, row, boot)
  if (row.state === 'copying') {
    const remark = 'The device was not heard any more while it copied.'
    return toState(context, row, { state: 'waiting', deadlineAt: deadlineOf(context, row), remark })
  }
  if (clock() < row.deadlineAt) return
  const hours = Math.round(row.waitSeconds / 3600)
  const time = hours === 1 ? 'an hour' : `${hours} hours`
  await fail(context, row, `${device.name} has not booted for the capture within ${time}.`)
}

interface CopyingBoot {
  outcome: string | null
  updatedAt: Date
  writeCacheUsedBytes: bigint | null
  writeCacheSizeBytes: bigint | null
}

/** The edge reports what it keeps of the copy as the fill of what the device writes. */
async function copyStep(context: ServiceContext, row: CaptureRow, boot: CopyingBoot): Promise<void> {
  const isNew = row.state !== 'copying'
  const deadlineAt = isNew ? new Date(context.clock().getTime() + copiedWithinMs) : row.deadlineAt
  if (context.clock() >= deadlineAt) return fail(context, row, 'The device has copied its disk for seven days.')
  const state = 'copying' as const
  if (boot.outcome === 'ready')
    return toState(context, row, { state, deadlineAt, progressBytes: row.sizeBytes ?? 0n, progressAt: boot.updatedAt })
  const { writeCacheUsedBytes: bytes, writeCacheSizeBytes: size, updatedAt } = boot
  const isNews = bytes !== null && size === row.sizeBytes && bytes !== row.progressBytes
  if (!isNews) return isNew ? toState(context, row, { state, deadlineAt }) : undefined
  const ms = row.progressAt === null ? 0 : updatedAt.getTime() - row.progressAt.getTime()
  const rate = ms > 0 && bytes > row.progressBytes ? ((bytes - row.progressBytes) * 1000n) / BigInt(ms) : null
  await toState(context, row, {
    state,
    deadlineAt,
    progressBytes: bytes,
    progressAt: updatedAt,
    ...(rate === null ? {} : { rateBytesPerSecond: rate }),
  })
}

interface FailedBoot {
  failedCause: string | null
  failedText: string | null
}

async function failedStep(context: ServiceContext, row: CaptureRow, boot: FailedBoot): Promise<void> {
  const problem = captureProblemOf(boot.failedCause, boot.failedText)
  const remark = remarkOf(boot.failedText)
  const deadlineAt = deadlineOf(context, row)
  switch (problem.kind) {
    case 'final':
      return fail(context, Object.assign(row, { remark }), problem.reason)
    case 'several':
      return toState(context, row, { state: 'asking', disks: problem.disks, remark: null, deadlineAt })
    case 'size':
      return changeSize(context, row, BigInt(problem.sizeBytes))
    case 'passing':
      if (context.clock() >= row.deadlineAt && row.state === 'waiting')
        return fail(context, row, 'The device did not boot for the capture in time: its boots fail.')
      return toState(context, row, { state: 'waiting', remark, ...(row.state === 'waiting' ? {} : { deadlineAt }) })
  }
}

/** The version has to be as large as the disk: another one takes its place, while the device tries again and again. */
async function changeSize(context: ServiceContext, row: CaptureRow, sizeBytes: bigint): Promise<void> {
  if (row.blankIds.length >= blanksMax)
    return fail(context, row, 'The device names another size of its disk again and again.')
  const made = await makeBlank(context, Object.assign(row, { sizeBytes }))
  const deadlineAt = new Date(context.clock().getTime() + hourMs)
  await toState(context, row, Object.assign(made, { state: 'preparing' as const, sizeBytes, deadlineAt }))
}

/** Everything is copied and kept. Throws like `sealVersion`. */
export async function seal(
  context: ServiceContext,
  row: CaptureRow,
  bootFiles: CaptureRow['bootFiles'],
): Promise<void> {
  const version = await writtenVersion(context, row)
  if (!version) return fail(context, row, 'Somebody has discarded the version that the device has written.')
  const { jobIds } = await sealVersion(context, {
    versionId: version.id,
    revision: version.revision,
    bootFiles: bootFiles ?? 'image',
  })
  const deadlineAt = new Date(context.clock().getTime() + hourMs)
  await toState(context, row, { state: 'sealing', jobId: jobIds[0] ?? null, bootFiles, deadlineAt, remark: null })
}

/** A failure keeps what was copied: it may be sealed with other boot files. */
async function sealStep(context: ServiceContext, row: CaptureRow): Promise<void> {
  const job = await readJob(context, row)
  if (job?.state === 'done') return finishCapture(context, row)
  if (job?.state === 'queued' || job?.state === 'running') {
    const late = `${job.edge.name} did not seal the version in time.`
    return context.clock() < row.deadlineAt ? undefined : fail(context, row, late)
  }
  const deadlineAt = deadlineOf(context, row)
  const remark = remarkOf(job?.message ?? null)
  await toState(context, row, { state: 'asking', disks: [], jobId: null, remark, deadlineAt })
}
