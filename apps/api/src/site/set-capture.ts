import type { z } from 'zod'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { setCaptureInput, setCaptureResult } from './schema.ts'

/** Of which boots the site's edges keep the packets before the stream, from now on. Throws `not_found`. */
export async function setCapture(
  context: ServiceContext,
  { siteId, capture }: z.output<typeof setCaptureInput>,
): Promise<z.infer<typeof setCaptureResult>> {
  const { db, actor } = context
  const where = ownRow(actor, siteId)
  return db.$transaction(async (transaction) => {
    const before = await transaction.site.findUnique({ where, select: { name: true, capture: true } })
    if (!before) throw new AppError('not_found')
    await transaction.site.update({ where, data: { capture }, select: { id: true } })
    await recordChange(context, {
      kind: 'site',
      id: siteId,
      name: before.name,
      before: { capture: before.capture },
      after: { capture },
    })
    return { capture }
  })
}
