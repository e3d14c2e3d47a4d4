import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { requireFreeName } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange, recordNothing } from '../events/record-change.ts'
import type { ChangedObject } from '../rules/changed-object.ts'
import { newEdgeKey } from './edge-key.ts'
import type {
  drainEdgeInput,
  edgeShareView,
  revokeEdgeInput,
  rotateKeyInput,
  setShareInput,
  updateEdgeInput,
} from './schema.ts'

type Share = z.infer<typeof edgeShareView>

const shareSelect = { revision: true, weight: true, subnets: true, draining: true } as const

/**
 * The settings that decide which of the site's devices the edge owns: its weight and the networks that it serves first.
 * Throws `not_found`; `conflict` if somebody else changed it meanwhile.
 */
export function setShare(
  context: ServiceContext,
  { edgeId, revision, weight, subnets }: z.output<typeof setShareInput>,
): Promise<Share> {
  return change(context, { edgeId, revision }, { weight, subnets: [...new Set(subnets)] })
}

/**
 * A drained edge gets no new boots while another edge of its site can take them; running boots continue. Throws like
 * `setShare`.
 */
export function drainEdge(
  context: ServiceContext,
  { edgeId, revision, draining }: z.output<typeof drainEdgeInput>,
): Promise<Share> {
  return change(context, { edgeId, revision }, { draining })
}

/** Throws `not_found`; `conflict` for a name that another edge of the site has, or if somebody else changed it. */
export async function renameEdge(
  context: ServiceContext,
  { edgeId, revision, name }: z.output<typeof updateEdgeInput>,
): Promise<ChangedObject> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'edge', id: edgeId, revision })
  const where = ownRow(actor, edgeId)
  const select = { id: true, name: true, revision: true } as const
  const before = await db.edge.findUniqueOrThrow({ where, select: { ...select, siteId: true } })
  const { siteId } = before
  if (name === before.name) {
    recordNothing(context)
    return { id: edgeId, name, revision: before.revision }
  }
  await requireFreeName(context, 'edge', { siteId, name, revokedAt: null })
  const after = await db.edge.update({ where, data: { name }, select })
  await recordChange(context, {
    kind: 'edge',
    id: edgeId,
    name,
    place,
    before: { name: before.name },
    after: { name },
  })
  return after
}

/**
 * Refuses the edge's requests from now on, permanently, and gives the site's other edges a new key. The edge continues
 * with its state until somebody stops it. Revoking again changes nothing. Throws `not_found`; `invalid` for another
 * name than the edge's; `conflict` if somebody else changed it meanwhile.
 */
export async function revokeEdge(
  context: ServiceContext,
  { edgeId, revision, name }: z.output<typeof revokeEdgeInput>,
): Promise<{ revokedAt: string }> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const where = ownRow(actor, edgeId)
  const select = { name: true, siteId: true, revokedAt: true } as const
  const revoked = await db.edge.findUnique({ where, select })
  if (revoked?.revokedAt && revoked.name === name) {
    recordNothing(context)
    return { revokedAt: revoked.revokedAt.toISOString() }
  }
  const place = await requireCurrent(context, { kind: 'edge', id: edgeId, revision })
  const edge = await db.edge.findUniqueOrThrow({ where, select })
  if (name !== edge.name)
    throw new AppError('invalid', {
      public: `This edge is named ${edge.name}. Enter that name to revoke it: it cannot be undone.`,
    })
  const revokedAt = clock()
  const { siteId } = edge
  await db.edge.update({ where, data: { revokedAt }, select: { id: true } })
  const edgeKey = newEdgeKey({ organizationId, siteId })
  await db.site.updateMany({ where: { organizationId, id: siteId }, data: { edgeKey } })
  await recordChange(context, {
    kind: 'edge',
    id: edgeId,
    name,
    place,
    before: { revokedAt: null },
    after: { revokedAt },
  })
  return { revokedAt: revokedAt.toISOString() }
}

/**
 * Orders a new key to replace the edge's current one; the edge creates it as soon as it learns of the order. Throws
 * `not_found`.
 */
export async function orderNewKey(
  context: ServiceContext,
  { edgeId }: z.output<typeof rotateKeyInput>,
): Promise<{ ordered: true }> {
  const { db, actor } = context
  const { organizationId } = actor
  const where = { organizationId, id: edgeId }
  const edge = await db.edge.findUnique({
    where: { organizationId_id: where },
    select: { name: true, publicKey: true, rotateKeyFrom: true, revokedAt: true },
  })
  if (!edge) throw new AppError('not_found')
  if (edge.revokedAt) throw new AppError('conflict', { public: 'This edge was revoked.' })
  await db.edge.updateMany({ where, data: { rotateKeyFrom: edge.publicKey } })
  await recordChange(context, {
    kind: 'edge',
    id: edgeId,
    name: edge.name,
    before: { newKeyInPlaceOf: edge.rotateKeyFrom },
    after: { newKeyInPlaceOf: edge.publicKey },
  })
  return { ordered: true }
}

async function change(
  context: ServiceContext,
  { edgeId, revision }: { edgeId: string; revision: number },
  data: Partial<Share>,
): Promise<Share> {
  const { db, actor } = context
  const place = await requireCurrent(context, { kind: 'edge', id: edgeId, revision })
  const where = ownRow(actor, edgeId)
  const { name, ...before } = await db.edge.findUniqueOrThrow({
    where,
    select: { ...shareSelect, name: true },
  })
  if (isDeepStrictEqual({ ...before, ...data }, before)) {
    recordNothing(context)
    return before
  }
  const after = await db.edge.update({ where, data, select: shareSelect })
  await recordChange(context, {
    kind: 'edge',
    id: edgeId,
    name,
    place,
    before: auditOf(before),
    after: auditOf(after),
  })
  return after
}

function auditOf({ weight, subnets, draining }: Share) {
  return { weight, subnets, draining }
}
