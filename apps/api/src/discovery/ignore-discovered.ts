import { ignoredMacsMax } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import { notify } from '../context/notifications.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Change } from '../events/event-bus.ts'
import { recordChanges, recordNothing } from '../events/record-change.ts'
import type { Place } from '../rules/place.ts'
import { lockSite } from './rows.ts'
import type { ignoreInput, ignoreResult } from './schema.ts'

/**
 * Ignored devices get no answer from the site's edges and are not reported any more; taken back, they wait again.
 * Throws `not_found`; `conflict` where a site ignores as many as its edges can be told of.
 */
export async function ignoreDiscovered(
  context: ServiceContext,
  { siteId, discoveredIds, ignored }: z.output<typeof ignoreInput>,
): Promise<z.infer<typeof ignoreResult>> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const place = { organizationId, siteId }
  return db.$transaction(async (transaction) => {
    await lockSite(transaction, place)
    const changed = await transaction.discoveredDevice.updateManyAndReturn({
      where: { ...place, id: { in: discoveredIds }, ignoredAt: ignored ? null : { not: null } },
      data: { ignoredAt: ignored ? clock() : null },
      select: { id: true, mac: true },
    })
    const ignoredCount = await transaction.discoveredDevice.count({
      where: { ...place, ignoredAt: { not: null } },
    })
    if (ignored && ignoredCount > ignoredMacsMax)
      throw new AppError('conflict', {
        public: `A site can ignore at most ${ignoredMacsMax} devices. Stop ignoring some first.`,
      })
    if (changed.length === 0) recordNothing(context)
    else {
      await recordChanges(
        context,
        changed.map((machine) => ignoredChange(context.request.place, machine, ignored)),
      )
      await notify(transaction, { discovered: { organizationId } })
    }
    return { changedCount: changed.length }
  })
}

/** What the audit log keeps of a machine that is ignored from now on, or no longer. */
export function ignoredChange(place: Place, { id, mac }: { id: string; mac: string }, ignored = true): Change {
  const object = { kind: 'discovered_device', id, name: mac, place }
  return { ...object, before: { ignored: !ignored }, after: { ignored } }
}
