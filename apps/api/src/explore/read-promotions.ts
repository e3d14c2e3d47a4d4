import { z } from 'zod'
import { visibleEvents } from '../access/visible.ts'
import type { ServiceContext } from '../context/service-context.ts'
import type { SampleFilter, Span } from './read-sample.ts'
import { type ExploreView, promotionsShown } from './schema.ts'

/** As webhook/publish-events.ts writes it. */
const promotionPayload = z.object({
  data: z.object({ vdiskId: z.uuid(), vdiskName: z.string(), versionId: z.uuid(), versionNumber: z.number() }),
})

/** The promotions and reverts of a span, the newest first, as far as events are kept and the actor sees them. */
export async function readPromotions(
  { db, actor }: ServiceContext,
  { farmId, vdiskId }: SampleFilter,
  { since, until }: Span,
): Promise<ExploreView['promotions']> {
  const rows = await db.webhookEvent.findMany({
    where: {
      organizationId: actor.organizationId,
      type: 'version.promoted',
      createdAt: { gte: since, lt: until },
      ...(farmId ? { farmId } : {}),
      ...(vdiskId ? { vdiskId } : {}),
      AND: [visibleEvents(actor)],
    },
    orderBy: { createdAt: 'desc' },
    take: promotionsShown,
    select: { createdAt: true, payload: true },
  })
  return rows.flatMap(({ createdAt, payload }) => {
    const parsed = promotionPayload.safeParse(payload)
    return parsed.success ? [{ at: createdAt.toISOString(), ...parsed.data.data }] : []
  })
}
