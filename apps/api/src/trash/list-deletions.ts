import type { z } from 'zod'
import { visibleDeletions } from '../access/visible.ts'
import { cutPage, decodeInstantCursor } from '../context/keyset.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { may } from '../rules/actor.ts'
import { trashKeptDays, trashKindNames, trashKinds, type trashListInput, type trashPage } from './schema.ts'

const dayMs = 86_400_000

/** Returns the deletions that can be restored, the newest first. */
export async function listDeletions(
  { db, actor }: ServiceContext,
  input: z.output<typeof trashListInput>,
): Promise<z.infer<typeof trashPage>> {
  const after = decodeInstantCursor(input.cursor)
  const rows = await db.deletion.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.kind ? { kind: input.kind } : {}),
      AND: [
        visibleDeletions(actor),
        after ? { OR: [{ deletedAt: { lt: after.at } }, { deletedAt: after.at, id: { lt: after.id } }] } : {},
      ],
    },
    orderBy: [{ deletedAt: 'desc' }, { id: 'desc' }],
    take: input.limit + 1,
    select: {
      id: true,
      kind: true,
      objectName: true,
      counts: true,
      deletedAt: true,
      deletedByName: true,
      farmId: true,
      siteId: true,
      collectionId: true,
    },
  })
  return cutPage(rows, input.limit, {
    item: ({ id, kind: noun, objectName, counts, deletedAt, deletedByName, ...place }) => {
      const kind = trashKindNames.find((name) => name === noun) ?? 'device'
      return {
        id,
        kind,
        name: objectName,
        deletedByName,
        deletedAt: deletedAt.toISOString(),
        purgedAt: new Date(deletedAt.getTime() + trashKeptDays * dayMs).toISOString(),
        with: Object.entries(counts as Record<string, number>)
          .filter(([other]) => other.toLowerCase() !== kind)
          .map(([other, count]) => ({ noun: other, count })),
        mayRestore: may(actor, trashKinds[kind], place),
      }
    },
    key: (row) => [row.deletedAt.toISOString(), row.id],
  })
}
