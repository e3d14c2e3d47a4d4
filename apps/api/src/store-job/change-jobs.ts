import type { storeJobKinds } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import { inEachOrganization } from '../context/for-each-organization.ts'
import {
  type DbOrTransaction,
  lockRow,
  ownRow,
  type PlatformContext,
  type ServiceContext,
  withTrash,
} from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { dayMs } from '../rules/utc-day.ts'
import { activeStates, askStore } from '../store/public.ts'
import { changeVdiskVersions } from '../vdisk/public.ts'
import { getStoreJob } from './list-jobs.ts'
import { type StoreJobView, type startStoreJobInput, storeJobsKeptDays } from './schema.ts'

/**
 * Throws `not_found` for the edge, and for a version that its store has not named; `invalid` for fields that the kind
 * does not have or lacks; `conflict` for an export of a version that the store does not hold completely.
 */
export async function startStoreJob(
  context: ServiceContext,
  input: z.output<typeof startStoreJobInput>,
): Promise<StoreJobView> {
  const { db, actor } = context
  const { organizationId } = actor
  const { edgeId, kind, versionId, format } = input
  const problem = problemOf(input)
  if (problem) throw new AppError('invalid', { public: problem })
  const stored =
    versionId === null
      ? null
      : await db.edgeVersion.findUnique({
          where: { organizationId_edgeId_versionId: { organizationId, edgeId, versionId } },
          select: { state: true, isLayer: true, version: { select: { vdiskId: true, number: true } } },
        })
  if (versionId !== null && !stored)
    throw new AppError('not_found', { public: 'This edge’s store has no such version.' })
  if (kind === 'export' && (stored?.state !== 'present' || stored.isLayer))
    throw new AppError('conflict', {
      public: `This edge has not reported that its store holds version ${stored?.version.number} completely.`,
    })
  const vdiskId = stored?.version.vdiskId ?? null
  const exportFormat = format ? { exportFormat: format } : {}
  return getStoreJob(context, await askStore(context, { edgeId, kind, vdiskId, versionId, ...exportFormat }))
}

function problemOf({ kind, versionId, format }: z.output<typeof startStoreJobInput>): string | null {
  if (kind === 'gc' && versionId !== null) return 'A store is cleaned as a whole. Leave the version out.'
  if (kind === 'export' && versionId === null) return 'An export is of one version. Name it.'
  if (kind === 'export' && format === null) return 'Name the format of the file: raw, qcow2 or vhdx.'
  if (kind !== 'export' && format !== null) return 'Only an export has a format. Leave it out.'
  return null
}

/**
 * Throws `not_found`; `conflict` for one that is over, and for a running seal, which copies nothing and is done at
 * once.
 */
export async function cancelStoreJob(context: ServiceContext, jobId: string): Promise<StoreJobView> {
  const { db, actor } = context
  const where = ownRow(actor, jobId)
  const job = await db.storeJob.findUnique({ where, select: { vdiskId: true, edgeId: true } })
  if (!job) throw new AppError('not_found')
  const vdisk = await db.vdisk.findFirst({
    where: { organizationId: actor.organizationId, id: job.vdiskId ?? jobId },
    select: { id: true },
  })
  if (vdisk)
    await changeVdiskVersions(context, { vdiskId: vdisk.id }, () => cancel(context, { jobId, edgeId: job.edgeId }))
  else await cancel(context, { jobId, edgeId: job.edgeId })
  return getStoreJob(context, jobId)
}

async function cancel(context: ServiceContext, { jobId, edgeId }: { jobId: string; edgeId: string }): Promise<void> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  // Before the job and its version, in the order of an edge's own message: it concerns versions, and none of them may
  // be half gone by then.
  await lockRow(db, 'edge', { organizationId, id: edgeId, strength: 'no key update' })
  await lockRow(db, 'store_job', { organizationId, id: jobId, strength: 'no key update' })
  const where = ownRow(actor, jobId)
  const job = await db.storeJob.findUniqueOrThrow({
    where,
    select: {
      id: true,
      edgeId: true,
      kind: true,
      state: true,
      vdiskId: true,
      versionId: true,
      intoVersionId: true,
      deviceId: true,
      edge: { select: { name: true } },
    },
  })
  const { kind, state, edge } = job
  if (state !== 'queued' && state !== 'running')
    throw new AppError('conflict', { public: `This job is already ${state}.` })
  if (kind === 'seal' && state === 'running')
    throw new AppError('conflict', {
      public: `${edge.name} is sealing it now, which takes only a moment.`,
    })
  await db.storeJob.update({ where, data: { state: 'cancelled', endedAt: clock() }, select: { id: true } })
  await undoJob(db, { organizationId, job })
  // Nobody uses what the edge may have made of it by now. Half an image of an import that it has started and not
  // reported yet would keep its store from freeing anything.
  const made = madeVersionId(job)
  if (made !== null && (kind === 'import' || (kind === 'merge' && state === 'running')))
    await askStore(context, { edgeId: job.edgeId, kind: 'delete', vdiskId: job.vdiskId, versionId: made })
  await recordChange(context, {
    kind: 'store_job',
    id: jobId,
    name: `${kind} on ${edge.name}`,
    before: { state },
    after: { state: 'cancelled' },
  })
}

/** Removes jobs of edges' stores that ended long ago. */
export async function dropOldStoreJobs({ db, clock }: PlatformContext): Promise<void> {
  const before = new Date(clock().getTime() - storeJobsKeptDays * dayMs)
  await inEachOrganization({ db }, (transaction, organizationId) =>
    transaction.storeJob.deleteMany({ where: { organizationId, endedAt: { lt: before } } }),
  )
}

export interface JobRow {
  id: string
  edgeId: string
  kind: (typeof storeJobKinds)[number]
  vdiskId: string | null
  versionId: string | null
  intoVersionId: string | null
  deviceId: string | null
}

/**
 * Removes what a failed job leaves behind: a version that was to be sealed is written again, and one that nobody makes
 * any more is removed. The caller holds the vDisk, and has recorded the job's end.
 */
export async function undoJob(
  db: DbOrTransaction,
  { organizationId, job }: { organizationId: string; job: JobRow },
): Promise<void> {
  if (job.kind === 'release_home' && job.deviceId)
    await db.device.updateMany({
      where: { organizationId, id: job.deviceId },
      data: { nextHomeEdgeId: null },
    })
  const id = madeVersionId(job)
  if (id === null) return
  if (job.kind === 'seal') {
    await db.vdiskVersion.updateMany({
      where: { organizationId, id, sealedAt: null },
      data: { sealAskedAt: null },
    })
    return
  }
  const others = await db.storeJob.count({
    where: { organizationId, state: activeStates, OR: [{ versionId: id }, { intoVersionId: id }] },
  })
  if (others === 0) await removeUnmade(db, { organizationId, id })
}

/** Removes a version that was never made, and frees its number if it was the last one: nobody has seen its content. */
async function removeUnmade(
  db: DbOrTransaction,
  { organizationId, id }: { organizationId: string; id: string },
): Promise<void> {
  const version = await db.vdiskVersion.findFirst({
    where: { organizationId, id, sealedAt: null },
    select: { number: true, vdiskId: true },
  })
  if (!version) return
  await db.vdiskVersion.deleteMany({ where: { organizationId, id, sealedAt: null } })
  await withTrash(
    db,
    () => db.$executeRaw`update vdisk set last_version_number = ${version.number - 1}
      where organization_id = ${organizationId}::uuid and id = ${version.vdiskId}::uuid and last_version_number = ${version.number}
        and not exists (select from vdisk_version as other where other.organization_id = ${organizationId}::uuid
          and other.vdisk_id = ${version.vdiskId}::uuid and other.number >= ${version.number})`,
  )
}

export function madeVersionId({
  kind,
  versionId,
  intoVersionId,
}: {
  kind: string
  versionId: string | null
  intoVersionId: string | null
}): string | null {
  if (kind === 'merge') return intoVersionId
  return kind === 'seal' || kind === 'import' || kind === 'adopt' ? versionId : null
}
