import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { recordDifference } from '../events/record-change.ts'
import { getCleaning } from './get-cleaning.ts'
import type { CleaningView, cleaningSetInput } from './schema.ts'

/**
 * Chooses when the store of an edge frees what no version needs. Throws `not_found`; `conflict` if somebody else has
 * changed the edge meanwhile.
 */
export async function setCleaning(
  context: ServiceContext,
  { edgeId, revision, mode, window }: z.output<typeof cleaningSetInput>,
): Promise<CleaningView> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'edge', id: edgeId, revision })
  const where = ownRow(actor, edgeId)
  const select = { name: true, gcMode: true, gcFrom: true, gcTo: true } as const
  const before = await db.edge.findUniqueOrThrow({ where, select })
  const data = { gcMode: mode, gcFrom: window?.from ?? null, gcTo: window?.to ?? null }
  const after = await db.edge.update({ where, data, select })
  await recordDifference(context, { kind: 'edge', id: edgeId, name: before.name, place, before, after })
  return getCleaning(context, edgeId)
}
