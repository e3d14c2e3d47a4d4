import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { recordChange, recordNothing } from '../events/record-change.ts'
import { getAlert } from './read-alerts.ts'
import type { AlertView, acknowledgeAlertInput } from './schema.ts'

/** Says that somebody looks after the alert, or takes that back. It stays open. Throws `not_found`. */
export async function acknowledgeAlert(
  context: ServiceContext,
  { alertId, acknowledged }: z.output<typeof acknowledgeAlertInput>,
): Promise<AlertView> {
  const { db, clock, actor } = context
  const { organizationId, userName } = actor
  const changed = await db.alert.updateMany({
    where: { organizationId, id: alertId, acknowledgedAt: acknowledged ? null : { not: null } },
    data: {
      acknowledgedAt: acknowledged ? clock() : null,
      acknowledgedByUserId: acknowledged ? actor.userId : null,
      acknowledgedByName: acknowledged ? userName : null,
    },
  })
  const alert = await getAlert(context, alertId)
  if (changed.count === 0) recordNothing(context)
  else
    await recordChange(context, {
      kind: 'alert',
      id: alertId,
      name: alert.title,
      before: { acknowledged: !acknowledged },
      after: { acknowledged },
    })
  return alert
}
