import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { isDue, readCleaning } from './read-cleaning.ts'
import type { CleaningView } from './schema.ts'

/** Throws `not_found`. */
export async function getCleaning({ db, clock, actor }: ServiceContext, edgeId: string): Promise<CleaningView> {
  const { organizationId } = actor
  const edge = await db.edge.findUnique({
    where: ownRow(actor, edgeId),
    select: { revision: true, gcMode: true, gcFrom: true, gcTo: true },
  })
  if (!edge) throw new AppError('not_found')
  const [facts] = await readCleaning(db, { organizationId, edgeId, now: clock() })
  const last = await db.storeJob.findFirst({
    where: { organizationId, edgeId, kind: 'gc' },
    orderBy: [{ askedAt: 'desc' }, { id: 'desc' }],
    select: { id: true, state: true, endedAt: true, message: true },
  })
  const { revision, gcMode: mode, gcFrom, gcTo } = edge
  return {
    revision,
    mode,
    window: gcFrom === null || gcTo === null ? null : { from: gcFrom, to: gcTo },
    // A revoked edge is not among them.
    isDue: facts !== undefined && isDue(facts),
    last: last && {
      jobId: last.id,
      state: last.state,
      endedAt: last.endedAt?.toISOString() ?? null,
      untrusted: { message: last.message },
    },
  }
}
