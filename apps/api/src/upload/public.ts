import type { DbOrTransaction, ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'

/** Returns what an import needs of an upload. Throws `not_found`; `conflict` for one that is not complete. */
export async function requireComplete(
  { db, actor }: ServiceContext,
  { vdiskId, uploadId }: { vdiskId: string; uploadId: string },
): Promise<{ sourceSizeBytes: bigint; sourceSha256: string }> {
  const { organizationId } = actor
  const row = await db.upload.findFirst({
    where: { organizationId, id: uploadId, vdiskId },
    select: { sizeBytes: true, sha256: true },
  })
  if (!row) throw new AppError('not_found', { public: 'This upload does not exist, or has expired. Begin a new one.' })
  if (row.sha256 === null)
    throw new AppError('conflict', { public: 'The upload is not complete. Send the rest of the file first.' })
  return { sourceSizeBytes: row.sizeBytes, sourceSha256: row.sha256 }
}

/** An edge has imported it: the job that removes bytes without an upload removes its bytes. */
export async function forgetUpload(
  db: DbOrTransaction,
  { organizationId, uploadId }: { organizationId: string; uploadId: string },
): Promise<void> {
  await db.upload.deleteMany({ where: { organizationId, id: uploadId } })
}
