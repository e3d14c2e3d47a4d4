import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type CaptureRow, hourMs, lockCapture, newestCapture, toState } from './capture-row.ts'
import { seal } from './capture-steps.ts'
import { captureViewOf } from './get-capture.ts'
import { makeBlank } from './make-blank.ts'
import type { answerCaptureInput, CaptureView } from './schema.ts'
import { beginUndo } from './undo-capture.ts'

/**
 * Cancels a capture: the device boots by its own settings again, and what was copied is discarded once the device is
 * off. Throws `not_found`; `conflict` where none is active, and while it is undone already.
 */
export async function cancelCapture(context: ServiceContext, deviceId: string): Promise<CaptureView> {
  const row = await requireActive(context, deviceId)
  if (row.state === 'undoing') throw conflict('This capture is being undone already.')
  await beginUndo(context, row, { endsAs: 'cancelled', reason: null })
  return viewNow(context, deviceId)
}

/**
 * Names the disk that the device captures, or the boot files with which the version is sealed. Throws `not_found`;
 * `conflict` where that is not asked, `invalid` for a disk that the device has not named.
 */
export async function answerCapture(
  context: ServiceContext,
  { deviceId, disk, bootFiles }: z.output<typeof answerCaptureInput>,
): Promise<CaptureView> {
  const row = await requireActive(context, deviceId)
  const asks = row.state !== 'asking' ? 'nothing' : row.disks.length > 0 ? 'the disk' : 'the boot files'
  if (asks !== (disk === null ? 'the boot files' : 'the disk')) throw conflict(`This capture asks for ${asks} now.`)
  if (disk === null) await seal(context, row, bootFiles === 'none' ? 'none' : null)
  else await nameDisk(context, row, disk)
  return viewNow(context, deviceId)
}

async function nameDisk(context: ServiceContext, row: CaptureRow, disk: string): Promise<void> {
  if (!row.disks.includes(disk))
    throw new AppError('invalid', {
      public: `The device has named no disk ${disk}. Name one of ${row.disks.join(', ')}.`,
    })
  const made = await makeBlank(context, Object.assign(row, { disk }))
  const deadlineAt = new Date(context.clock().getTime() + hourMs)
  await toState(context, row, Object.assign(made, { state: 'preparing' as const, disk, disks: [], deadlineAt }))
}

async function requireActive(context: ServiceContext, deviceId: string): Promise<CaptureRow> {
  const { db, actor } = context
  const { organizationId } = actor
  const newest = await newestCapture(db, { organizationId, deviceId })
  const row = newest && (await lockCapture(db, { organizationId, id: newest.id }))
  await requireCurrent(context, { kind: 'device', id: deviceId })
  if (!row || row.endedAt !== null) throw conflict('No disk of this device is being captured.')
  return row
}

async function viewNow(context: ServiceContext, deviceId: string): Promise<CaptureView> {
  const { organizationId } = context.actor
  const row = await newestCapture(context.db, { organizationId, deviceId })
  if (!row) throw new AppError('not_found')
  return captureViewOf(context, row)
}

function conflict(text: string): AppError {
  return new AppError('conflict', { public: text })
}
