import type { z } from 'zod'
import { ofLiveSite, visibleFindings } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { findingDetailOf, findingOf, findingSelect } from './rows.ts'
import { type FindingDetail, type findingListInput, type findingPage, findingSort } from './schema.ts'

export async function listFindings(
  { db, actor }: ServiceContext,
  { state, siteId, vdiskId, versionId, ...asked }: z.output<typeof findingListInput>,
): Promise<z.infer<typeof findingPage>> {
  const order = listOrder(findingSort, asked)
  const states = state === 'current' ? (['open', 'acknowledged'] as const) : state ? [state] : null
  const rows = await db.finding.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(states ? { state: { in: [...states] } } : {}),
      ...(siteId ? { siteId } : {}),
      ...(vdiskId ? { vdiskId } : {}),
      ...(versionId ? { factor: 'version', value: versionId } : {}),
      AND: [visibleFindings(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: findingSelect,
  })
  return order.page(rows, findingOf)
}

/** Throws `not_found`. */
export async function getFinding(
  { db, actor }: Pick<ServiceContext, 'db' | 'actor'>,
  findingId: string,
): Promise<FindingDetail> {
  const row = await db.finding.findUnique({
    where: { ...ownRow(actor, findingId), ...ofLiveSite },
    select: findingSelect,
  })
  if (!row) throw new AppError('not_found')
  return findingDetailOf(row)
}
