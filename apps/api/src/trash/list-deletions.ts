import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleDeletions } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type Actor, may } from '../rules/actor.ts'
import {
  type DeletionView,
  type deletionInput,
  trashKeptDays,
  trashKindNames,
  trashKinds,
  type trashListInput,
  type trashPage,
  trashSort,
} from './schema.ts'

const dayMs = 86_400_000

/** Returns the deletions that can be restored. */
export async function listDeletions(
  { db, actor }: ServiceContext,
  input: z.output<typeof trashListInput>,
): Promise<z.infer<typeof trashPage>> {
  const order = listOrder(trashSort, input)
  const rows = await db.deletion.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.kind ? { kind: input.kind } : {}),
      AND: [visibleDeletions(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: deletionSelect,
  })
  return order.page(rows, (row) => deletionViewOf(row, actor))
}

/** Throws `not_found`. */
export async function getDeletion(
  { db, actor }: ServiceContext,
  { deletionId }: z.output<typeof deletionInput>,
): Promise<DeletionView> {
  const row = await db.deletion.findUnique({ where: ownRow(actor, deletionId), select: deletionSelect })
  if (!row) throw new AppError('not_found')
  return deletionViewOf(row, actor)
}

const deletionSelect = {
  id: true,
  kind: true,
  objectName: true,
  counts: true,
  deletedAt: true,
  deletedByName: true,
  purgeAt: true,
  farmId: true,
  siteId: true,
  collectionId: true,
} satisfies Prisma.DeletionSelect
type DeletionRow = Prisma.DeletionGetPayload<{ select: typeof deletionSelect }>

function deletionViewOf(row: DeletionRow, actor: Actor): DeletionView {
  const { id, kind: noun, objectName, counts, deletedAt, deletedByName, purgeAt, ...place } = row
  const kind = trashKindNames.find((name) => name === noun) ?? 'device'
  return {
    id,
    kind,
    name: objectName,
    deletedByName,
    deletedAt: deletedAt.toISOString(),
    purgedAt: (purgeAt ?? new Date(deletedAt.getTime() + trashKeptDays * dayMs)).toISOString(),
    with: Object.entries(counts as Record<string, number>)
      .filter(([other]) => other.toLowerCase() !== kind)
      .map(([other, count]) => ({ noun: other, count })),
    mayRestore: may(actor, trashKinds[kind], place),
  }
}
