import { randomUUID } from 'node:crypto'
import { inOrganization } from '@bootfarm/db'
import type { z } from 'zod'
import {
  type DbOrTransaction,
  lockOrganization,
  ownRow,
  type PlatformContext,
  type ServiceContext,
} from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { Actor } from '../rules/actor.ts'
import { dayMs } from '../rules/utc-day.ts'
import { readUpload } from './list-uploads.ts'
import { type UploadView, type uploadCreateInput, type uploadGetInput, uploadsPerVdiskMax } from './schema.ts'
import type { Piece, Uploads } from './uploads.ts'

/** An upload is deleted when nothing arrived for so long, and no import took it. */
const keptMs = 7 * dayMs
/** Not with every piece. */
const extendedAfterMs = dayMs / 4

type Context = ServiceContext & { uploads: Uploads }

/**
 * Announces an upload. Throws `invalid` for one that is larger than the installation takes; `conflict` where there are
 * no uploads, where the organization's limit is reached, and where the disk has no space for it.
 */
export async function createUpload(
  context: Context,
  { vdiskId, name, sizeBytes, sha256 }: z.output<typeof uploadCreateInput>,
): Promise<UploadView> {
  const { db, clock, actor, uploads } = context
  const { organizationId } = actor
  const { sizeBytesMax } = uploads.settings
  if (sizeBytes > sizeBytesMax)
    throw new AppError('invalid', {
      public: `An upload can have at most ${sizeBytesMax} bytes. Put larger images into the edge’s store, or import them from a URL.`,
    })
  await uploads.requireSpace(sizeBytes)
  await requireQuota(context, { vdiskId, sizeBytes })
  const now = clock()
  const id = randomUUID()
  await db.upload.create({
    data: {
      organizationId,
      id,
      vdiskId,
      name,
      sizeBytes,
      expectedSha256: sha256,
      createdByUserId: actor.userId,
      createdByName: actor.userName,
      createdAt: now,
      expiresAt: new Date(now.getTime() + keptMs),
    },
    select: { id: true },
  })
  await recordChange(context, { kind: 'upload', id, name, before: null, after: { name, sizeBytes, sha256 } })
  return readUpload(context, { vdiskId, uploadId: id })
}

async function requireQuota(
  { db, actor, uploads }: Context,
  { vdiskId, sizeBytes }: { vdiskId: string; sizeBytes: number },
): Promise<void> {
  const { organizationId } = actor
  // Two at once do not pass the limit together.
  await lockOrganization(db, organizationId, 'no key update')
  const { _sum } = await db.upload.aggregate({ where: { organizationId }, _sum: { sizeBytes: true } })
  const max = uploads.settings.organizationBytesMax
  if (Number(_sum.sizeBytes ?? 0n) + sizeBytes > max)
    throw new AppError('conflict', {
      public: `The uploads of this organization can have at most ${max} bytes together. Import or delete some first.`,
    })
  const count = await db.upload.count({ where: { organizationId, vdiskId } })
  if (count >= uploadsPerVdiskMax)
    throw new AppError('conflict', { public: `This vDisk already has ${count} uploads. Import or delete some first.` })
}

/** Throws `not_found`. An import that takes it fails. The bytes are deleted by `afterCommit`. */
export async function deleteUpload(
  context: Context & { afterCommit: (work: () => Promise<unknown>) => void },
  { vdiskId, uploadId }: z.output<typeof uploadGetInput>,
): Promise<UploadView> {
  const { db, actor, uploads, afterCommit } = context
  const { organizationId } = actor
  const upload = await readUpload(context, { vdiskId, uploadId })
  const { name } = upload
  await db.upload.delete({ where: ownRow(actor, uploadId), select: { id: true } })
  await recordChange(context, { kind: 'upload', id: uploadId, name, before: { name }, after: null })
  afterCommit(() => uploads.delete({ organizationId, uploadId }))
  return upload
}

interface Arrival extends Omit<Piece, 'organizationId' | 'sizeBytes'> {
  vdiskId: string
}

/**
 * Takes a piece of an upload; the caller has checked the actor's permission. The last one completes the upload. Throws
 * `not_found`; `conflict` for a wrong offset, for too little space, and for bytes that are not those that were
 * announced, which are deleted.
 */
export async function receivePiece(
  { db, clock, actor, uploads }: PlatformContext & { actor: Actor; uploads: Uploads },
  { vdiskId, uploadId, offset, bytes }: Arrival,
): Promise<{ receivedBytes: number; sizeBytes: number }> {
  const { organizationId } = actor
  const key = { organizationId, uploadId }
  const within = <T>(work: (tenant: DbOrTransaction) => Promise<T>) => inOrganization(db, organizationId, work)
  const row = await within((tenant) => beginPiece(tenant, { ...key, vdiskId, now: clock() }))
  const sizeBytes = Number(row.sizeBytes)
  if (row.sha256 !== null) return { receivedBytes: sizeBytes, sizeBytes }
  await uploads.requireSpace(0)
  const receivedBytes = await uploads.receive({ ...key, sizeBytes, offset, bytes })
  if (receivedBytes < sizeBytes) return { receivedBytes, sizeBytes }
  const sha256 = await uploads.sha256(key, sizeBytes)
  if (row.expectedSha256 !== null && row.expectedSha256 !== sha256) {
    await uploads.delete(key)
    throw new AppError('conflict', {
      public: `The bytes that arrived have the SHA-256 ${sha256}, and ${row.expectedSha256} was announced. They were deleted: send the file again.`,
      extra: { receivedBytes: 0 },
    })
  }
  const { count } = await within((tenant) =>
    tenant.upload.updateMany({ where: { organizationId, id: uploadId }, data: { sha256 } }),
  )
  if (count === 0) throw new AppError('not_found')
  return { receivedBytes, sizeBytes }
}

async function beginPiece(
  db: DbOrTransaction,
  { organizationId, uploadId, vdiskId, now }: { organizationId: string; uploadId: string; vdiskId: string; now: Date },
) {
  const row = await db.upload.findFirst({
    where: { organizationId, id: uploadId, vdiskId, expiresAt: { gt: now } },
    select: { sizeBytes: true, sha256: true, expectedSha256: true, expiresAt: true },
  })
  if (!row) throw new AppError('not_found', { public: 'This upload does not exist, or has expired. Begin a new one.' })
  const expiresAt = new Date(now.getTime() + keptMs)
  if (expiresAt.getTime() - row.expiresAt.getTime() > extendedAfterMs)
    await db.upload.updateMany({ where: { organizationId, id: uploadId }, data: { expiresAt } })
  return row
}
