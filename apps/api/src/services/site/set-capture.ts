import type { z } from 'zod'
import type { setCaptureInput, setCaptureResult } from '../../domain/farm-view.ts'
import { AppError } from '../../errors/app-error.ts'
import { notify } from '../notifications.ts'
import type { ServiceContext } from '../service-context.ts'

/** Of which boots the site's edges keep the packets before the stream, from now on. Throws `not_found`. */
export async function setCapture(
  { db, actor }: ServiceContext,
  { siteId, capture }: z.output<typeof setCaptureInput>,
): Promise<z.infer<typeof setCaptureResult>> {
  const { organizationId } = actor
  return db.$transaction(async (transaction) => {
    const { count } = await transaction.site.updateMany({
      where: { organizationId, id: siteId },
      data: { capture },
    })
    if (count === 0) throw new AppError('not_found')
    await notify(transaction, { state: { siteId } })
    return { capture }
  })
}
