import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import type { DbOrTransaction } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import { activeStates } from '../store/public.ts'
import { type UploadView, type uploadGetInput, type uploadPage, uploadsPerVdiskMax } from './schema.ts'
import type { Uploads } from './uploads.ts'

const uploadSelect = {
  id: true,
  vdiskId: true,
  name: true,
  sizeBytes: true,
  sha256: true,
  createdByName: true,
  createdAt: true,
  expiresAt: true,
} satisfies Prisma.UploadSelect
type UploadRow = Prisma.UploadGetPayload<{ select: typeof uploadSelect }>

interface ReadContext {
  db: DbOrTransaction
  actor: Pick<Actor, 'organizationId'>
  uploads: Uploads
}

/** The uploads of a vDisk, newest first; there are few. */
export async function listUploads(context: ReadContext, vdiskId: string): Promise<z.infer<typeof uploadPage>> {
  const { db, actor } = context
  const rows = await db.upload.findMany({
    where: { organizationId: actor.organizationId, vdiskId },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: uploadsPerVdiskMax,
    select: uploadSelect,
  })
  const importJobs = await importJobsOf(context, rows)
  return { items: await Promise.all(rows.map((row) => uploadViewOf(context, row, importJobs))) }
}

/** Throws `not_found`. */
export async function readUpload(
  context: ReadContext,
  { vdiskId, uploadId }: z.output<typeof uploadGetInput>,
): Promise<UploadView> {
  const { organizationId } = context.actor
  const row = await context.db.upload.findFirst({
    where: { organizationId, id: uploadId, vdiskId },
    select: uploadSelect,
  })
  if (!row) throw new AppError('not_found', { public: 'This upload does not exist, or has expired. Begin a new one.' })
  return uploadViewOf(context, row, await importJobsOf(context, [row]))
}

/** Returns the jobs that take uploads of a vDisk, by the ids of the uploads. An import takes complete ones only. */
async function importJobsOf({ db, actor }: ReadContext, uploads: UploadRow[]): Promise<Map<string | null, string>> {
  const complete = uploads.filter(({ sha256 }) => sha256 !== null).map(({ id }) => id)
  const [first] = uploads
  if (!first || complete.length === 0) return new Map()
  const jobs = await db.storeJob.findMany({
    where: {
      organizationId: actor.organizationId,
      vdiskId: first.vdiskId,
      uploadId: { in: complete },
      state: activeStates,
    },
    select: { id: true, uploadId: true },
  })
  return new Map(jobs.map(({ id, uploadId }) => [uploadId, id]))
}

async function uploadViewOf(
  { actor, uploads }: ReadContext,
  row: UploadRow,
  importJobs: Map<string | null, string>,
): Promise<UploadView> {
  const { id, vdiskId, name, sha256, createdByName, createdAt, expiresAt } = row
  const sizeBytes = Number(row.sizeBytes)
  const isComplete = sha256 !== null
  const held = isComplete || !uploads.areOpen ? sizeBytes : await uploads.files.sizeOf({ ...actor, uploadId: id })
  return {
    id,
    vdiskId,
    name,
    sizeBytes,
    receivedBytes: Math.min(held, sizeBytes),
    sha256,
    isComplete,
    importJobId: importJobs.get(id) ?? null,
    createdBy: createdByName,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  }
}
