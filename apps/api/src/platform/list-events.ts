import type { z } from 'zod'
import { cutPage, decodeInstantCursor } from '../context/keyset.ts'
import type { PlatformContext } from '../context/service-context.ts'
import type { platformEventPage, platformEventsInput } from './schema.ts'

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
