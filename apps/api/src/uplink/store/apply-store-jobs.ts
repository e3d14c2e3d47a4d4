import type { MadeVersion, StoreJobReport, writeCacheClasses } from '@bootfarm/proto/uplink'
import {
  type AuthenticatedEdge,
  type DbOrTransaction,
  ownRow,
  type SystemContext,
} from '../../context/service-context.ts'
import { endPack, keepAtEdge } from '../../difference/public.ts'
import { noteSizeMax } from '../../rules/object-fields.ts'
import { type JobRow, madeVersionId, undoJob } from '../../store-job/change-jobs.ts'
import { forgetUpload } from '../../upload/public.ts'
import { withVdiskHeld } from '../../vdisk/hold-vdisk.ts'
import { readVersions, writeVersions } from '../../vdisk/version-facts.ts'
import { commandLineText } from '../../vdisk/version-schema.ts'
import { apply } from '../../vdisk/version-steps.ts'
import { recordOfEdge } from '../enrol/record-of-edge.ts'

type Job = JobRow & {
  state: string
  layerClass: (typeof writeCacheClasses)[number] | null
  uploadId: string | null
  differenceId: string | null
  toControlPlane: boolean | null
}

/**
 * Applies the progress of an edge's jobs. A job that is already over here stays unchanged, except a seal that was done
 * before it was cancelled.
 */
export async function applyStoreJobs(
  context: SystemContext,
  edge: AuthenticatedEdge,
  reports: StoreJobReport[],
): Promise<void> {
  const { db, clock } = context
  const { organizationId, edgeId } = edge
  for (const report of reports) {
    const job = await db.storeJob.findFirst({
      where: { organizationId, edgeId, id: report.id },
      select: {
        id: true,
        edgeId: true,
        kind: true,
        state: true,
        vdiskId: true,
        versionId: true,
        intoVersionId: true,
        deviceId: true,
        layerClass: true,
        uploadId: true,
        differenceId: true,
        toControlPlane: true,
      },
    })
    if (!job || !isOpen(job, report)) continue
    if (report.state === 'running') {
      await keepProgress(db, { organizationId, report, now: clock() })
      continue
    }
    const end = () => endJob(context, edge, { job, report })
    const known =
      job.vdiskId && (await db.vdisk.findFirst({ where: { organizationId, id: job.vdiskId }, select: { id: true } }))
    if (known) await withVdiskHeld({ db, clock, actor: { organizationId } }, { vdiskId: known.id }, end)
    else await end()
  }
}

function isOpen(job: Job, report: StoreJobReport): boolean {
  if (job.state === 'queued' || job.state === 'running') return true
  return job.state === 'cancelled' && job.kind === 'seal' && report.state === 'done'
}

/** Returns those of an edge's reported jobs that are over here, or unknown. */
export async function settledJobs(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  reports: StoreJobReport[],
): Promise<string[]> {
  const ids = [...new Set(reports.map(({ id }) => id))]
  const active = await db.storeJob.findMany({
    where: { organizationId, edgeId, id: { in: ids }, state: { in: ['queued', 'running'] } },
    select: { id: true },
  })
  const open = new Set(active.map(({ id }) => id))
  return ids.filter((id) => !open.has(id))
}

interface Reported {
  organizationId: string
  report: StoreJobReport
  now: Date
}

async function keepProgress(db: DbOrTransaction, { organizationId, report, now }: Reported): Promise<void> {
  const { id, progressBytes, totalBytes, message = null } = report
  if (report.isWaiting) {
    await db.storeJob.updateMany({ where: { organizationId, id, state: 'queued' }, data: { message } })
    return
  }
  await db.$executeRaw`update store_job set state = 'running', progress_bytes = ${progressBytes}, total_bytes = ${totalBytes},
      message = ${message}, started_at = coalesce(started_at, ${now})
    where organization_id = ${organizationId}::uuid and id = ${id}::uuid`
}

async function endJob(
  { db, clock }: SystemContext,
  edge: AuthenticatedEdge,
  { job, report }: { job: Job; report: StoreJobReport },
): Promise<void> {
  const { organizationId, edgeId } = edge
  const now = clock()
  const problem = report.state === 'done' ? await problemWith(db, edge, { job, report, now }) : (report.message ?? null)
  const state =
    report.state === 'done' && problem === null ? 'done' : report.state === 'cancelled' ? 'cancelled' : 'failed'
  const { progressBytes, totalBytes, message = null } = report
  await db.$executeRaw`update store_job set state = ${state}::"StoreJobState", progress_bytes = ${progressBytes},
      total_bytes = ${totalBytes}, message = ${problem ?? message}, started_at = coalesce(started_at, ${now}), ended_at = ${now}
    where organization_id = ${organizationId}::uuid and id = ${job.id}::uuid`
  if (state !== 'done') await undoJob(db, { organizationId, job })
  if (state === 'done' && job.uploadId) await forgetUpload(db, { organizationId, uploadId: job.uploadId })
  await recordOfEdge({ db, now }, edge, (place) => [
    {
      action: `store_job.${state}`,
      kind: 'store_job',
      id: job.id,
      name: job.kind,
      place,
      before: { state: job.state },
      after: { state },
    },
  ])
  if (job.kind === 'drop_layer' && state === 'done' && job.deviceId)
    await db.device.updateMany({
      where: { organizationId, id: job.deviceId, layerEdgeId: edgeId, layerClass: job.layerClass },
      data: { layerClass: null, layerEdgeId: null, layerVersionId: null, layerBytes: null },
    })
  if (job.kind === 'release_home' && state === 'done' && job.deviceId)
    await moveHome(db, edge, { deviceId: job.deviceId, now })
  if (job.kind === 'delete' && state === 'done' && job.versionId)
    await db.edgeVersion.deleteMany({ where: { organizationId, edgeId, versionId: job.versionId } })
}

/** @returns why the result of a job is refused; null if it is accepted */
async function problemWith(
  db: DbOrTransaction,
  edge: AuthenticatedEdge,
  { job, report, now }: { job: Job; report: StoreJobReport; now: Date },
): Promise<string | null> {
  const { kind, differenceId, toControlPlane } = job
  const { organizationId, edgeId } = edge
  const ended = { organizationId, edgeId, differenceId, now }
  if (kind === 'pack') return endPack(db, { ...ended, packed: report.packed, toControlPlane: toControlPlane ?? false })
  if (kind === 'fetch') await keepAtEdge(db, ended)
  return finish(db, edge, { job, made: report.made, now })
}

/** The edge keeps nothing of the device and starts nothing: from now on another one may. */
async function moveHome(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { deviceId, now }: { deviceId: string; now: Date },
): Promise<void> {
  await db.$executeRaw`
    update device set home_edge_id = next_home_edge_id, next_home_edge_id = null, home_since = ${now}
    where organization_id = ${organizationId}::uuid and id = ${deviceId}::uuid and home_edge_id = ${edgeId}::uuid
      and next_home_edge_id is not null`
}

/** Returns whether the adopted bytes are those that were shown when the adoption was requested. */
async function isAsShown(
  db: DbOrTransaction,
  { organizationId, job, root }: { organizationId: string; job: Job; root: Buffer },
): Promise<boolean> {
  const { edgeId, versionId } = job
  const shown = await db.edgeVersion.findFirst({
    where: { organizationId, edgeId, versionId: versionId ?? job.id },
    select: { root: true },
  })
  return shown?.root != null && root.equals(shown.root)
}

/** A merge makes a version of the same bytes, and so of the same root, as the version that was merged. */
async function isRootOfMerged(
  db: DbOrTransaction,
  { organizationId, job, root }: { organizationId: string; job: Job; root: Buffer },
): Promise<boolean> {
  const merged = await db.vdiskVersion.findFirst({
    where: { organizationId, id: job.versionId ?? job.id },
    select: { manifestRoot: true },
  })
  // Without a manifest, or deleted since: nothing to compare with.
  return !merged?.manifestRoot || root.equals(merged.manifestRoot)
}

/** @returns why the created version is refused; null if it is accepted, or if nothing was to be created */
async function finish(
  db: DbOrTransaction,
  { organizationId }: AuthenticatedEdge,
  { job, made, now }: { job: Job; made: MadeVersion | undefined; now: Date },
): Promise<string | null> {
  const id = madeVersionId(job)
  if (id === null) return null
  if (made?.versionId !== id) return 'the edge did not report what it created'
  const version = await db.vdiskVersion.findFirst({
    where: { organizationId, id },
    select: { sealedAt: true, manifestRoot: true, vdiskId: true, note: true },
  })
  if (!version) return 'the version was deleted'
  const root = Buffer.from(made.root, 'base64')
  // Before the first result is believed: a damaged edge that is quicker must not make the others fail.
  if (job.kind === 'merge' && !(await isRootOfMerged(db, { organizationId, job, root })))
    return 'the edge created different data than the merged version has; verify that version at this edge'
  // Another edge was first: the same version must have the same bytes.
  if (version.sealedAt !== null)
    return version.manifestRoot && root.equals(version.manifestRoot)
      ? null
      : 'another edge created different data for it'
  if (job.kind === 'adopt' && !(await isAsShown(db, { organizationId, job, root })))
    return 'the edge has different data under its name now; check it and adopt that image'
  const commandLine = made.commandLine === undefined ? null : commandLineText.safeParse(made.commandLine)
  if (commandLine && !commandLine.success) return 'the kernel command line of the image is not valid'
  await db.vdiskVersion.update({
    where: ownRow({ organizationId }, id),
    data: {
      manifestCounter: BigInt(made.counter),
      sizeBytes: BigInt(made.sizeBytes),
      ...(commandLine ? { commandLine: commandLine.data } : {}),
      // Made elsewhere, with a note of its own; the one that was written here counts more.
      ...(job.kind === 'adopt' && version.note === '' && made.note ? { note: made.note.slice(0, noteSizeMax) } : {}),
      ...(made.kernel ? { kernelSha256: made.kernel.sha256, kernelSizeBytes: BigInt(made.kernel.sizeBytes) } : {}),
      ...(made.initrd ? { initrdSha256: made.initrd.sha256, initrdSizeBytes: BigInt(made.initrd.sizeBytes) } : {}),
    },
    select: { id: true },
  })
  // Last, because a sealed version no longer changes.
  const key = { organizationId, vdiskId: version.vdiskId }
  const before = await readVersions(db, key)
  if (!before) return 'the vDisk was deleted'
  const { next, refusal } = apply(before, { kind: 'finish', versionId: id, manifestRoot: Uint8Array.from(root) }, now)
  if (refusal) return refusal.text
  await writeVersions(db, key, { before, next })
  return null
}
