import type { DbOrTransaction } from '../context/service-context.ts'

interface Key {
  organizationId: string
  id: string
}

/** Takes back orders of which no boot has come: the next boots of those devices are none of the experiment's. */
export async function withdrawTrials(db: DbOrTransaction, { organizationId, id }: Key): Promise<void> {
  await db.experimentTrial.updateMany({
    where: { organizationId, experimentId: id, state: 'ordered' },
    data: { state: 'waiting', orders: 0, orderedAt: null, untilAt: null },
  })
}

/** Ends it at once. Its boots that have not ended count for nothing. */
export async function endExperiment(
  db: DbOrTransaction,
  { organizationId, id }: Key,
  { state, reason, now }: { state: 'done' | 'stopped'; reason: string | null; now: Date },
): Promise<void> {
  await db.experimentTrial.updateMany({
    where: { organizationId, experimentId: id, state: { in: ['waiting', 'ordered', 'booting'] } },
    data: { state: 'dropped', reason: 'the experiment ended before it', untilAt: null, endedAt: now },
  })
  await db.experiment.update({
    where: { organizationId_id: { organizationId, id } },
    data: { state, reason, endedAt: now },
  })
}
