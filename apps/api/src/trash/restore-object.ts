import { Prisma } from '@bootfarm/db'
import { type DbOrTransaction, ownRow, type ServiceContext, withTrash } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { DeletedObject } from '../rules/changed-object.ts'
import type { Place } from '../rules/place.ts'
import { type TrashKind, trashKindNames } from './schema.ts'
import { trashTables } from './trash-tables.ts'

interface Parent {
  noun: string
  name: string
}

/** The objects above an object, by its kind. */
const parents: Partial<Record<TrashKind, { noun: string; table: Prisma.Sql; parent: Prisma.Sql; column: Prisma.Sql }>> =
  {
    site: parentOf('farm', Prisma.sql`site`, Prisma.sql`farm`, Prisma.sql`farm_id`),
    vdisk: parentOf('farm', Prisma.sql`vdisk`, Prisma.sql`farm`, Prisma.sql`farm_id`),
    store: parentOf('farm', Prisma.sql`store`, Prisma.sql`farm`, Prisma.sql`farm_id`),
    collection: parentOf('site', Prisma.sql`collection`, Prisma.sql`site`, Prisma.sql`site_id`),
    device: parentOf('collection', Prisma.sql`device`, Prisma.sql`collection`, Prisma.sql`collection_id`),
    version: parentOf('vDisk', Prisma.sql`vdisk_version`, Prisma.sql`vdisk`, Prisma.sql`vdisk_id`),
  }

/** Columns that have to be free again, with the words for them. */
const uniqueColumns: Partial<
  Record<TrashKind, { table: Prisma.Sql; scope: Prisma.Sql; column: Prisma.Sql; words: string }[]>
> = {
  farm: [named(Prisma.sql`farm`, Prisma.sql`organization_id`)],
  site: [named(Prisma.sql`site`, Prisma.sql`farm_id`)],
  vdisk: [named(Prisma.sql`vdisk`, Prisma.sql`farm_id`)],
  store: [named(Prisma.sql`store`, Prisma.sql`farm_id`)],
  collection: [named(Prisma.sql`collection`, Prisma.sql`site_id`)],
}
const ofDevices = [
  { table: Prisma.sql`device`, scope: Prisma.sql`site_id`, column: Prisma.sql`mac`, words: 'MAC address' },
  named(Prisma.sql`device`, Prisma.sql`site_id`),
]
const takenToldMax = 5

/** Returns the content of a deletion. Throws `not_found`, also for one of another kind. */
export async function requireDeletion(
  { db, actor }: ServiceContext,
  deletionId: string,
  kinds: readonly TrashKind[],
): Promise<{ kind: TrashKind; id: string; name: string }> {
  const deletion = await db.deletion.findFirst({
    where: { organizationId: actor.organizationId, id: deletionId },
    select: { kind: true, objectId: true, objectName: true },
  })
  const kind = trashKindNames.find((name) => name === deletion?.kind)
  if (!deletion || !kind || !kinds.includes(kind)) throw new AppError('not_found')
  return { kind, id: deletion.objectId, name: deletion.objectName }
}

/**
 * Takes everything of one deletion out of the trash. Throws `not_found`; `quota_exceeded`; `conflict` if its parent is
 * in the trash, or if names or addresses are taken by now: which.
 */
export async function restoreObject(
  context: ServiceContext,
  deletionId: string,
  kinds: readonly TrashKind[],
): Promise<{ id: string; name: string }> {
  const { kind, ...restored } = await requireDeletion(context, deletionId, kinds)
  return restore(context, { deletionId, kind, restored })
}

interface Restored {
  deletionId: string
  kind: TrashKind
  restored: { id: string; name: string }
}

async function restore(
  context: ServiceContext,
  { deletionId, kind, restored }: Restored,
): Promise<{ id: string; name: string }> {
  const { db, actor } = context
  const { organizationId } = actor
  await withTrash(db, async () => {
    await requireLiveParent(db, kind, { organizationId, id: restored.id })
    await requireFree(db, kind, { organizationId, deletionId })
    for (const { table } of trashTables)
      await db.$executeRaw`update ${table} set deletion_id = null
        where organization_id = ${organizationId}::uuid and deletion_id = ${deletionId}::uuid`
  })
  const { farmId, siteId, collectionId, counts } = await db.deletion.delete({
    where: ownRow(actor, deletionId),
    select: { farmId: true, siteId: true, collectionId: true, counts: true },
  })
  await requireRoomFor(db, counts as Record<string, number>)
  const place = { farmId, siteId, collectionId }
  await recordChange(context, { kind, ...restored, place, before: null, after: { name: restored.name } })
  return restored
}

/** Out of the trash they count again. Throws `quota_exceeded`. */
async function requireRoomFor(db: DbOrTransaction, counts: Record<string, number>): Promise<void> {
  const added = { sites: counts.site, devices: counts.device, vdisks: counts.vDisk }
  for (const [quota, count = 0] of Object.entries(added))
    await db.$executeRaw`select require_own_room(${quota}, ${count}::bigint)`
}

interface Where {
  organizationId: string
  id: string
}

async function requireLiveParent(db: DbOrTransaction, kind: TrashKind, { organizationId, id }: Where) {
  const above = parents[kind]
  if (!above) return
  const [parent] = await db.$queryRaw<Parent[]>`select ${above.noun} as noun, parent.name
    from ${above.table} as child join ${above.parent} as parent
      on parent.organization_id = child.organization_id and parent.id = child.${above.column}
    where child.organization_id = ${organizationId}::uuid and child.id = ${id}::uuid and parent.deletion_id is not null`
  if (parent)
    throw new AppError('conflict', {
      public: `Its ${parent.noun} ${parent.name} is in the trash. Restore that first.`,
    })
}

async function requireFree(
  db: DbOrTransaction,
  kind: TrashKind,
  { organizationId, deletionId }: { organizationId: string; deletionId: string },
): Promise<void> {
  for (const { table, scope, column, words } of [...(uniqueColumns[kind] ?? []), ...ofDevices]) {
    const taken = await db.$queryRaw<{ value: string; name: string }[]>`select gone.${column} as value, live.name
      from ${table} as gone join ${table} as live on live.organization_id = gone.organization_id
        and live.${scope} = gone.${scope} and live.${column} = gone.${column} and live.deletion_id is null
      where gone.organization_id = ${organizationId}::uuid and gone.deletion_id = ${deletionId}::uuid
      order by 1 limit ${takenToldMax}`
    const [first] = taken
    if (!first) continue
    const told = taken.map(({ value }) => value).join(', ')
    throw new AppError('conflict', {
      public:
        words === 'name'
          ? `The ${words} ${told} was taken in the meantime. Rename the other object first.`
          : `The ${words} ${told} was taken in the meantime by ${first.name}. Change or delete that first.`,
    })
  }
}

function parentOf(noun: string, table: Prisma.Sql, parent: Prisma.Sql, column: Prisma.Sql) {
  return { noun, table, parent, column }
}

function named(table: Prisma.Sql, scope: Prisma.Sql) {
  return { table, scope, column: Prisma.sql`name`, words: 'name' }
}

interface Deleted {
  kind: TrashKind
  id: string
  name: string
  place: Place
}

/**
 * Puts the object, and everything below it that is not in the trash yet, into the trash. The caller holds its row's
 * lock and has made sure that nothing else needs it.
 */
export async function deleteObject(context: ServiceContext, deleted: Deleted): Promise<DeletedObject> {
  const { db, clock, actor } = context
  const { kind, id, name, place } = deleted
  const by = { userId: actor.userId, userName: actor.userName }
  const { organizationId } = actor
  const { deletionId, counts } = await moveToTrash(db, { organizationId, by, now: clock(), purgeAt: null }, deleted)
  await recordChange(context, { kind, id, name, place, before: { name, ...counts }, after: null })
  return { deletionId, name }
}

interface Deletion {
  organizationId: string
  /** `userId` is null for a job. */
  by: { userId: string | null; userName: string }
  now: Date
  /** Null: when everything leaves the trash. */
  purgeAt: Date | null
}

/** Does the same without an entry in the audit log. */
export async function moveToTrash(
  db: DbOrTransaction,
  { organizationId, by, now, purgeAt }: Deletion,
  { kind, id, name, place }: Deleted,
): Promise<{ deletionId: string; counts: Record<string, number> }> {
  const { id: deletionId } = await db.deletion.create({
    data: {
      organizationId,
      kind,
      objectId: id,
      objectName: name,
      ...place,
      counts: {},
      deletedAt: now,
      deletedByUserId: by.userId,
      deletedByName: by.userName,
      purgeAt,
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
  await db.deletion.update({ where: ownRow({ organizationId }, deletionId), data: { counts }, select: { id: true } })
  return { deletionId, counts }
}

/** The conditions begin with a column of the table that is updated. */
function ofTable(table: Prisma.Sql, condition: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`${table}.${condition}`
}
