import type { z } from 'zod'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordDifference } from '../events/record-change.ts'
import { findingDetailOf, findingSelect } from './rows.ts'
import type { FindingDetail, FindingState, findingChangeInput, linkFindingInput } from './schema.ts'

type Asked = z.output<typeof findingChangeInput>

/** A person knows of it: it no longer counts as new. Throws `not_found` and `conflict`. */
export function acknowledgeFinding(context: ServiceContext, asked: Asked): Promise<FindingDetail> {
  return change(context, asked, () => stateBy(context, 'acknowledged'))
}

/** Nobody wants to hear of it, and of the same found again, until it is over. Throws `not_found` and `conflict`. */
export function muteFinding(context: ServiceContext, asked: Asked): Promise<FindingDetail> {
  return change(context, asked, () => stateBy(context, 'muted'))
}

/** Throws `not_found` and `conflict`. */
export function unmuteFinding(context: ServiceContext, asked: Asked): Promise<FindingDetail> {
  return change(context, asked, (before) => {
    if (before.state !== 'muted') throw notNow('is not muted')
    return stateBy(context, 'open')
  })
}

/** Names the change that explains it. Throws `not_found`, `conflict`, and `invalid` for an entry that there is not. */
export function linkFinding(
  context: ServiceContext,
  { auditEntryId, ...asked }: z.output<typeof linkFindingInput>,
): Promise<FindingDetail> {
  return change(context, asked, async () => {
    if (auditEntryId) {
      const where = ownRow(context.actor, auditEntryId)
      const entry = await context.db.auditEntry.findUnique({ where, select: { id: true } })
      if (!entry) {
        const message = 'The audit log has no such entry. Copy the id of one of its entries.'
        throw new AppError('invalid', { public: message, fields: [{ in: 'body', field: 'auditEntryId', message }] })
      }
    }
    return { auditEntryId }
  })
}

interface Changed {
  state?: FindingState
  stateByName?: string
  stateAt?: Date
  auditEntryId?: string | null
}

function stateBy({ actor, clock }: ServiceContext, state: FindingState): Changed {
  return { state, stateByName: actor.userName, stateAt: clock() }
}

async function change(
  context: ServiceContext,
  { findingId, revision }: Asked,
  work: (before: FindingDetail) => Changed | Promise<Changed>,
): Promise<FindingDetail> {
  const { db, actor } = context
  const { organizationId } = actor
  const where = ownRow(actor, findingId)
  return db.$transaction(async (transaction) => {
    await lockRow(transaction, 'finding', { organizationId, id: findingId, strength: 'no key update' })
    const row = await transaction.finding.findUnique({ where, select: findingSelect })
    if (!row) throw new AppError('not_found')
    const before = findingDetailOf(row)
    if (before.revision !== revision)
      throw new AppError('conflict', {
        public: `This finding was changed in the meantime: it is ${before.state}. Load the latest version.`,
        extra: { revision: before.revision },
      })
    if (before.state === 'closed') throw notNow('is closed: its boots are as before again')
    const data = { ...(await work(before)), revision: { increment: 1 } }
    const after = findingDetailOf(await transaction.finding.update({ where, data, select: findingSelect }))
    const place = { farmId: row.site.farmId, siteId: row.siteId, collectionId: null }
    const object = { kind: 'finding', id: findingId, name: after.valueName, place }
    await recordDifference(
      { ...context, db: transaction },
      { ...object, before: factsOf(before), after: factsOf(after) },
    )
    return after
  })
}

function factsOf({ state, auditEntryId }: FindingDetail) {
  return { state, auditEntryId }
}

function notNow(what: string): AppError {
  return new AppError('conflict', { public: `This finding ${what}.` })
}
