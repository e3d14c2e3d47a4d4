import { ignoredMacsMax } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import type { ignoreInput, ignoreResult } from '../../domain/discovery-view.ts'
import { AppError } from '../../errors/app-error.ts'
import { notify } from '../notifications.ts'
import type { ServiceContext } from '../service-context.ts'
import { lockSite } from './discovered-rows.ts'

/**
 * Ignored devices get no answer from the site's edges and are not reported any more; taken back, they wait again.
 * Throws `not_found`; `conflict` where a site ignores as many as its edges can be told of.
 */
export async function ignoreDiscovered(
  { db, clock, actor }: ServiceContext,
  { siteId, discoveredIds, ignored }: z.output<typeof ignoreInput>,
): Promise<z.infer<typeof ignoreResult>> {
  const { organizationId } = actor
  const place = { organizationId, siteId }
  return db.$transaction(async (transaction) => {
    await lockSite(transaction, place)
    const { count } = await transaction.discoveredDevice.updateMany({
      where: { ...place, id: { in: discoveredIds }, ignoredAt: ignored ? null : { not: null } },
      data: { ignoredAt: ignored ? clock() : null },
    })
    const ignoredCount = await transaction.discoveredDevice.count({
      where: { ...place, ignoredAt: { not: null } },
    })
    if (ignored && ignoredCount > ignoredMacsMax)
      throw new AppError('conflict', {
        public: `A site ignores at most ${ignoredMacsMax} devices; take some back first.`,
      })
    if (count > 0) {
      await notify(transaction, { state: { siteId } })
      await notify(transaction, { discovered: { organizationId } })
    }
    return { changedCount: count }
  })
}
