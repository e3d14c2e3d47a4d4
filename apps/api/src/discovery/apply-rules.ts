import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { notify } from '../context/notifications.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { recordChanges, recordNothing } from '../events/record-change.ts'
import { adoptedChange, ignoredChange } from './ignore-discovered.ts'
import { lockSite, type SitePlace } from './rows.ts'
import { carryOut, type Plan, planRules } from './run-rules.ts'
import { discoveredWaitingMax, type rulesApplied, type rulesPreview } from './schema.ts'

/** Previews `applyRules`, device by device. Throws `not_found`. */
export async function previewRules(
  { db, actor }: ServiceContext,
  siteId: string,
): Promise<z.infer<typeof rulesPreview>> {
  const place = { organizationId: actor.organizationId, siteId }
  return db.$transaction(async (transaction) => {
    await lockSite(transaction, place)
    const { plans } = await planRules(transaction, place, await readWaiting(transaction, place))
    return { devices: plans.map(previewOf) }
  })
}

/** Applies the rules to the devices that wait now. Throws `not_found`. */
export async function applyRules(context: ServiceContext, siteId: string): Promise<z.infer<typeof rulesApplied>> {
  const { db, clock, actor, request } = context
  const { organizationId } = actor
  const place = { organizationId, siteId }
  return db.$transaction(async (transaction) => {
    await lockSite(transaction, place)
    const planned = await planRules(transaction, place, await readWaiting(transaction, place))
    const { adopted, ignored } = await carryOut(transaction, place, { ...planned, now: clock() })
    await notify(transaction, { discovered: { organizationId } })
    const changes = [
      ...adopted.map((device) => adoptedChange(request.place, device)),
      ...ignored.map((machine) => ignoredChange(request.place, machine)),
    ]
    if (changes.length === 0) recordNothing(context)
    else await recordChanges(context, changes)
    return { adoptedCount: adopted.length, ignoredCount: ignored.length }
  })
}

/** In the order in which they were first seen, so that numbers follow it. */
function readWaiting(transaction: DbTransaction, place: SitePlace) {
  return transaction.discoveredDevice.findMany({
    where: { ...place, ignoredAt: null },
    orderBy: [{ firstSeenAt: 'asc' }, { mac: 'asc' }],
    take: discoveredWaitingMax,
    select: { id: true, mac: true, vendorClass: true, clientArch: true, relay: true },
  })
}

function previewOf(plan: Plan<{ id: string; mac: string; vendorClass: string | null }>) {
  const { id, mac, vendorClass } = plan.device
  return {
    id,
    mac,
    vendorClass,
    outcome: plan.kind,
    ruleNumber: plan.kind === 'none' ? null : plan.ruleIndex + 1,
    name: plan.kind === 'adopt' ? plan.name : null,
  }
}
