import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'

/** In one transaction. A request numbers no more; the job goes on until none is left. */
const numberedAtOnceMax = 1_000

/** How far an organization's list of events reaches. */
export interface EventNumbering {
  /** Another one after a restore from a backup: the numbers behind the backup are given again. */
  incarnation: number
  lastNumber: number
  /** Events up to here may have been removed. */
  removedNumber: number
}

/**
 * Gives a number to each event that was committed before, and returns how far the numbers reach. A number that is drawn
 * when its row is written may become visible after a higher one; these are drawn after the commit, by one transaction
 * of an organization at a time (docs/decisions/0057-list-of-events.md).
 */
export async function numberEvents(db: DbOrTransaction, organizationId: string): Promise<EventNumbering> {
  const before = await readNumbering(db, organizationId)
  if (!before.isBehind) return before
  await numberSome(db, organizationId)
  return readNumbering(db, organizationId)
}

/** Numbers what nobody has asked for, so that whoever asks finds little to number. */
export async function numberAllEvents({ db }: Pick<PlatformContext, 'db'>): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_new_events() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      let numbered = numberedAtOnceMax
      while (numbered === numberedAtOnceMax)
        numbered = await inOrganization(db, organizationId, (tenant) => numberSome(tenant, organizationId))
    },
    rows.map(({ id }) => id),
  )
}

async function numberSome(db: DbOrTransaction, organizationId: string): Promise<number> {
  const [row] = await db.$queryRaw<{ numbered: number }[]>`
    select number_events(${organizationId}::uuid, ${numberedAtOnceMax}::int) as numbered`
  return row?.numbered ?? 0
}

interface NumberingRow {
  incarnation: number
  lastNumber: bigint
  removedNumber: bigint
  isBehind: boolean
}

async function readNumbering(
  db: DbOrTransaction,
  organizationId: string,
): Promise<EventNumbering & { isBehind: boolean }> {
  const [row] = await db.$queryRaw<NumberingRow[]>`
    select organization.state_incarnation as incarnation, coalesce(numbering.last_number, 0) as "lastNumber",
      coalesce(numbering.removed_number, 0) as "removedNumber",
      exists (select from webhook_event as event where event.organization_id = organization.id
        and event.number is null and event.type <> 'ping') as "isBehind"
    from organization left join event_numbering as numbering on numbering.organization_id = organization.id
    where organization.id = ${organizationId}::uuid`
  if (!row) throw new AppError('not_found')
  return { ...row, lastNumber: Number(row.lastNumber), removedNumber: Number(row.removedNumber) }
}
