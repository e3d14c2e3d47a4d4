import type { z } from 'zod'
import type { platformEventPage, platformEventsInput } from '../../domain/platform-view.ts'
import { cutPage, decodeInstantCursor } from '../keyset.ts'
import type { PlatformContext } from '../service-context.ts'

/** The platform's own log, newest first. */
export async function listPlatformEvents(
  { db }: PlatformContext,
  { cursor, limit }: z.output<typeof platformEventsInput>,
): Promise<z.infer<typeof platformEventPage>> {
  const after = decodeInstantCursor(cursor)
  const rows = await db.platformEvent.findMany({
    where: after ? { OR: [{ at: { lt: after.at } }, { at: after.at, id: { lt: after.id } }] } : {},
    orderBy: [{ at: 'desc' }, { id: 'desc' }],
    take: limit + 1,
  })
  return cutPage(rows, limit, {
    item: ({ at, subjectId, before, after: changed, ...row }) => ({
      ...row,
      at: at.toISOString(),
      organizationId: subjectId,
      before: before as Record<string, unknown> | null,
      after: changed as Record<string, unknown> | null,
    }),
    key: (row) => [row.at.toISOString(), row.id],
  })
}
