import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import { dayMs } from '../rules/utc-day.ts'

/** Messages of webhooks are tried for less than four days. */
export const eventsKeptDays = 30
/** Of an organization, whose devices may all fail every minute. */
export const eventsKeptMax = 1_000_000
/** In one transaction. */
const removedAtOnceMax = 5_000

/** Removes events that are older, or more, than are kept, with their messages and those of tests. */
export async function removeOldEvents({ db, clock }: PlatformContext, keptMax = eventsKeptMax): Promise<void> {
  const before = new Date(clock().getTime() - eventsKeptDays * dayMs)
  await forEachOrganization({ db }, async (organizationId) => {
    let removed = removedAtOnceMax
    while (removed === removedAtOnceMax)
      removed = await inOrganization(db, organizationId, (tenant) =>
        removeSome(tenant, organizationId, { before, keptMax }),
      )
  })
}

/** Notes up to which number, so that a cursor before it is refused instead of skipping them. */
async function removeSome(
  db: DbOrTransaction,
  organizationId: string,
  { before, keptMax }: { before: Date; keptMax: number },
): Promise<number> {
  // First of all, as `number_events` does: both lock the same events otherwise, in another order.
  const [numbering] = await db.$queryRaw<{ last: bigint }[]>`
    select last_number as last from event_numbering where organization_id = ${organizationId}::uuid for update`
  const through = (numbering?.last ?? 0n) - BigInt(keptMax)
  const [row] = await db.$queryRaw<{ removed: number }[]>`
    with old as (
      (select id from webhook_event where organization_id = ${organizationId}::uuid and created_at < ${before}
        order by created_at limit ${removedAtOnceMax})
      union
      (select id from webhook_event where organization_id = ${organizationId}::uuid and number is not null
        and number <= ${through} order by number limit ${removedAtOnceMax})
      limit ${removedAtOnceMax}
    ), removed as (
      delete from webhook_event as event using old
      where event.organization_id = ${organizationId}::uuid and event.id = old.id
      returning event.number
    ), noted as (
      update event_numbering
      set removed_number = greatest(removed_number, (select max(number) from removed))
      where organization_id = ${organizationId}::uuid
    )
    select count(*)::int as removed from removed`
  return row?.removed ?? 0
}
