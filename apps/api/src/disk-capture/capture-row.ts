import type { Prisma } from '@bootfarm/db'
import { type DbOrTransaction, lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { recordChange } from '../events/record-change.ts'
import type { CaptureState } from './schema.ts'

/** Captures as they are kept, and the changes of their state. */

const select = {
  id: true,
  deviceId: true,
  vdiskId: true,
  isNewVdisk: true,
  edgeId: true,
  bootVersionId: true,
  state: true,
  disk: true,
  disks: true,
  sizeBytes: true,
  bootFiles: true,
  note: true,
  jobId: true,
  blankIds: true,
  versionId: true,
  formerVdiskId: true,
  formerDeviceType: true,
  formerMenuChoice: true,
  formerMenuId: true,
  remark: true,
  endsAs: true,
  reason: true,
  progressBytes: true,
  progressAt: true,
  rateBytesPerSecond: true,
  waitSeconds: true,
  deadlineAt: true,
  askedByKind: true,
  askedByUserId: true,
  askedByKeyId: true,
  askedByName: true,
  askedAt: true,
  endedAt: true,
} satisfies Prisma.DiskCaptureSelect
export type CaptureRow = Prisma.DiskCaptureGetPayload<{ select: typeof select }>

export const hourMs = 3_600_000
const remarkSizeMax = 200

/** The newest one of a device. */
export function newestCapture(
  db: DbOrTransaction,
  { organizationId, deviceId }: { organizationId: string; deviceId: string },
): Promise<CaptureRow | null> {
  return db.diskCapture.findFirst({
    where: { organizationId, deviceId },
    orderBy: [{ askedAt: 'desc' }, { id: 'desc' }],
    select,
  })
}

/** Locks it before anything that it changes: two processes, or a person and a process, take its steps in turn. */
export async function lockCapture(
  db: DbOrTransaction,
  { organizationId, id }: { organizationId: string; id: string },
): Promise<CaptureRow | null> {
  await lockRow(db, 'disk_capture', { organizationId, id, strength: 'no key update' })
  return db.diskCapture.findUnique({ where: ownRow({ organizationId }, id), select })
}

type Changes = Omit<Prisma.DiskCaptureUncheckedUpdateInput, 'state' | 'organizationId' | 'id'>

/** Takes a capture to its next state, which the log of its device shows. */
export async function toState(
  context: ServiceContext,
  row: CaptureRow,
  { state, ...changes }: Changes & { state: CaptureState },
): Promise<void> {
  const { db, actor } = context
  await db.diskCapture.update({
    where: ownRow(actor, row.id),
    data: Object.assign(changes, { state }),
    select: { id: true },
  })
  if (state !== row.state) await tellState(context, row, { state, reason: changes.reason ?? row.reason })
}

interface Told {
  state: CaptureState
  reason: unknown
}

async function tellState(context: ServiceContext, row: CaptureRow, { state, reason }: Told): Promise<void> {
  const { db, actor } = context
  const device = await db.device.findUnique({ where: ownRow(actor, row.deviceId), select: { name: true } })
  await recordChange(context, {
    kind: 'device',
    id: row.deviceId,
    name: device?.name ?? null,
    before: { diskCapture: row.state },
    after: { diskCapture: state, ...(typeof reason === 'string' ? { reason } : {}) },
  })
}

export function deadlineOf({ clock }: Pick<ServiceContext, 'clock'>, { waitSeconds }: { waitSeconds: number }): Date {
  return new Date(clock().getTime() + waitSeconds * 1000)
}

export function remarkOf(text: string | null): string | null {
  return text === null ? null : text.slice(0, remarkSizeMax)
}
