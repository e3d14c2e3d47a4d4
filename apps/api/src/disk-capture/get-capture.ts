import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { type CaptureRow, newestCapture } from './capture-row.ts'
import type { CaptureState, CaptureView, captureOfDevice } from './schema.ts'

export async function getCapture(context: ServiceContext, deviceId: string): Promise<z.infer<typeof captureOfDevice>> {
  const { organizationId } = context.actor
  const row = await newestCapture(context.db, { organizationId, deviceId })
  return { capture: row && (await captureViewOf(context, row)) }
}

export async function captureViewOf({ db, actor }: ServiceContext, row: CaptureRow): Promise<CaptureView> {
  const { id, deviceId, disk, disks, sizeBytes, progressAt, rateBytesPerSecond } = row
  const versionSelect = { id: true, number: true, vdisk: { select: { name: true } } } as const
  const versionOf = (versionId: string | null) =>
    versionId === null ? null : db.vdiskVersion.findUnique({ where: ownRow(actor, versionId), select: versionSelect })
  const vdisk = await db.vdisk.findUnique({ where: ownRow(actor, row.vdiskId), select: { id: true, name: true } })
  const edge = await db.edge.findUniqueOrThrow({ where: ownRow(actor, row.edgeId), select: { id: true, name: true } })
  const version = await versionOf(row.versionId)
  const boots = await versionOf(row.bootVersionId)
  // Only services of this folder write it.
  const state = row.state as CaptureState
  return {
    id,
    deviceId,
    state,
    question: state !== 'asking' ? null : disks.length > 0 ? 'disk' : 'boot_files',
    disk,
    disks,
    sizeBytes: sizeBytes === null ? null : Number(sizeBytes),
    vdisk,
    version: version && { id: version.id, number: version.number },
    edge,
    bootVersion: boots && { id: boots.id, number: boots.number, vdiskName: boots.vdisk.name },
    copied:
      progressAt === null || sizeBytes === null
        ? null
        : {
            bytes: Number(row.progressBytes),
            totalBytes: Number(sizeBytes),
            bytesPerSecond: rateBytesPerSecond === null ? null : Number(rateBytesPerSecond),
            reportedAt: progressAt.toISOString(),
          },
    deadlineAt: row.deadlineAt.toISOString(),
    reason: row.reason,
    untrusted: { remark: row.remark },
    askedBy: row.askedByName,
    askedAt: row.askedAt.toISOString(),
    endedAt: row.endedAt?.toISOString() ?? null,
  }
}
