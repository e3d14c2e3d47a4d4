import type { AuthenticatedEdge, DbOrTransaction } from '../../context/service-context.ts'
import type { StatePair } from './state-pair.ts'

/**
 * Notes that an edge has the state that it asks to follow.
 * @returns ms since that was signed; null where it is noted already, or the pair is not the last one
 */
export async function acknowledgeState(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  { pair: { incarnation, counter }, now }: { pair: StatePair; now: Date },
): Promise<number | null> {
  const rows = await db.$queryRaw<{ issued_at: Date }[]>`
    update desired_state set acknowledged_at = ${now}
    where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid and incarnation = ${incarnation}::bigint
      and counter = ${counter}::bigint and acknowledged_at is null returning issued_at`
  const [row] = rows
  return row ? now.getTime() - row.issued_at.getTime() : null
}
