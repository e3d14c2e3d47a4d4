import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import type { DbOrTransaction } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
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
  return { items: await Promise.all(rows.map((row) => uploadViewOf(context, row))) }
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
  return uploadViewOf(context, row)
}

async function uploadViewOf({ actor, uploads }: ReadContext, row: UploadRow): Promise<UploadView> {
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
    createdBy: createdByName,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  }
}
