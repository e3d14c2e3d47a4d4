import { Prisma } from '@bootfarm/db'
import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { withTrash } from '../context/with-trash.ts'
import { recordChange } from '../events/record-change.ts'
import type { DeletedObject } from '../rules/changed-object.ts'
import type { Place } from '../rules/place.ts'
import type { TrashKind } from './schema.ts'
import { trashTables } from './trash-tables.ts'

interface Deleted {
  kind: TrashKind
  id: string
  name: string
  place: Place
}

/**
 * Puts the object, and all that lies in it and is not in the trash yet, into the trash. The caller holds its row's lock
 * and has made sure that nothing else needs it.
 */
export async function deleteObject(
  context: ServiceContext,
  { kind, id, name, place }: Deleted,
): Promise<DeletedObject> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const { id: deletionId } = await db.deletion.create({
    data: {
      organizationId,
      kind,
      objectId: id,
      objectName: name,
      ...place,
      counts: {},
      deletedAt: clock(),
      deletedByUserId: actor.userId,
      deletedByName: actor.userName,
    },
    select: { id: true },
  })
  const counts = await withTrash(db, async () => {
    const found: Record<string, number> = {}
    for (const { noun, table, within } of trashTables) {
      const condition = within[kind]
      if (!condition) continue
      const count = await db.$executeRaw`update ${table} set deletion_id = ${deletionId}::uuid
        from (select ${organizationId}::uuid as organization_id, ${id}::uuid as id) as object
        where ${table}.organization_id = object.organization_id and ${ofTable(table, condition)}
          and ${table}.deletion_id is null`
      if (count > 0) found[noun] = count
    }
    return found
  })
  await db.deletion.update({
    where: ownRow({ organizationId }, deletionId),
    data: { counts },
    select: { id: true },
  })
  await recordChange(context, { kind, id, name, place, before: { name, ...counts }, after: null })
  return { deletionId, name }
}

/** The conditions begin with a column of the table that is updated. */
function ofTable(table: Prisma.Sql, condition: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`${table}.${condition}`
}
