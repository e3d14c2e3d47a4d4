import type { DbTransaction, Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import type { drainEdgeInput, edgeShareView, revokeEdgeInput, setShareInput } from '../../domain/edge-view.ts'
import { AppError } from '../../errors/app-error.ts'
import { notify } from '../notifications.ts'
import type { ServiceContext } from '../service-context.ts'
import { newEdgeKey } from '../uplink/site-edges.ts'

type Share = z.infer<typeof edgeShareView>

const shareSelect = { weight: true, subnets: true, draining: true } as const

/** Which of the site's devices are the edge's: its weight and the networks that it serves first. Throws `not_found`. */
export function setShare(
  { db, actor: { organizationId } }: ServiceContext,
  { edgeId, weight, subnets }: z.output<typeof setShareInput>,
): Promise<Share> {
  return db.$transaction((transaction) =>
    change(transaction, { organizationId, edgeId }, { weight, subnets: [...new Set(subnets)] }),
  )
}

/** A drained edge gets no new boots while another of its site can have them; what runs there goes on. Throws `not_found`. */
export function drainEdge(
  { db, actor: { organizationId } }: ServiceContext,
  { edgeId, draining }: z.output<typeof drainEdgeInput>,
): Promise<Share> {
  return db.$transaction((transaction) => change(transaction, { organizationId, edgeId }, { draining }))
}

/**
 * Refuses the edge's requests from now on, for ever, and gives the site's other edges a new key. It goes on by the state that
 * it has until somebody stops it. Revoking again changes nothing. Throws `not_found`.
 */
export function revokeEdge(
  { db, clock, actor: { organizationId } }: ServiceContext,
  { edgeId }: z.output<typeof revokeEdgeInput>,
): Promise<{ revokedAt: string }> {
  return db.$transaction(async (transaction) => {
    const where = { organizationId, id: edgeId }
    const { count } = await transaction.edge.updateMany({
      where: { ...where, revokedAt: null },
      data: { revokedAt: clock() },
    })
    const edge = await transaction.edge.findUnique({
      where: { organizationId_id: where },
      select: { siteId: true, revokedAt: true },
    })
    if (!edge?.revokedAt) throw new AppError('not_found')
    const { siteId } = edge
    if (count > 0) {
      await transaction.site.updateMany({
        where: { organizationId, id: siteId },
        data: { edgeKey: newEdgeKey() },
      })
      await notify(transaction, { state: { siteId } })
    }
    return { revokedAt: edge.revokedAt.toISOString() }
  })
}

/** Orders a new key in place of the one that the edge has now; it makes one as soon as it hears of it. Throws `not_found`. */
export async function orderNewKey(
  { db, actor: { organizationId } }: ServiceContext,
  { edgeId }: z.output<typeof revokeEdgeInput>,
): Promise<{ ordered: true }> {
  const where = { organizationId, id: edgeId }
  const edge = await db.edge.findUnique({
    where: { organizationId_id: where },
    select: { siteId: true, publicKey: true, revokedAt: true },
  })
  if (!edge) throw new AppError('not_found')
  if (edge.revokedAt) throw new AppError('conflict', { public: 'This edge was revoked.' })
  await db.edge.updateMany({ where, data: { rotateKeyFrom: edge.publicKey } })
  await notify(db, { state: { siteId: edge.siteId } })
  return { ordered: true }
}

async function change(
  transaction: DbTransaction,
  { organizationId, edgeId }: { organizationId: string; edgeId: string },
  data: Prisma.EdgeUpdateManyMutationInput,
): Promise<Share> {
  const [row] = await transaction.edge.updateManyAndReturn({
    where: { organizationId, id: edgeId },
    data,
    select: { ...shareSelect, siteId: true },
  })
  if (!row) throw new AppError('not_found')
  const { siteId, ...share } = row
  await notify(transaction, { state: { siteId } })
  return share
}
