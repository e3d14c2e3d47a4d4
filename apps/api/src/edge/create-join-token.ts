import { createHash, randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { ownRow, type ServiceContext, type SystemContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { done, type doneView } from '../rules/changed-object.ts'
import { edgeSummaryOf, edgeSummarySelect } from './rows.ts'
import type { createdJoinToken, joinTokenInput, joinTokenList, joinTokenListInput, joinTokenView } from './schema.ts'

const joinTokenSizeBytes = 24
const joinTokenValidMs = 3_600_000

export function hashJoinToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

interface JoinTokenSite {
  organizationId: string
  siteId: string
  /** Null where the demo's set-up makes it. */
  createdByUserId: string | null
}

/** Does the same as `createJoinToken`, for a person. */
export async function offerJoinToken(
  context: ServiceContext,
  siteId: string,
): Promise<z.infer<typeof createdJoinToken>> {
  const { organizationId, userId: createdByUserId } = context.actor
  const created = await createJoinToken(context, { organizationId, siteId, createdByUserId })
  const site = await context.db.site.findUniqueOrThrow({
    where: ownRow({ organizationId }, siteId),
    select: { name: true },
  })
  await recordChange(context, {
    kind: 'join_token',
    id: created.id,
    name: `for ${site.name}`,
    before: null,
    after: { siteId, expiresAt: created.expiresAt },
  })
  return created
}

/** A one-time right to enrol one edge at a site, for an hour. Throws `not_found`. */
export async function createJoinToken(
  { db, clock }: SystemContext,
  { organizationId, siteId, createdByUserId }: JoinTokenSite,
): Promise<z.infer<typeof createdJoinToken>> {
  const site = await db.site.findUnique({ where: ownRow({ organizationId }, siteId), select: { id: true } })
  if (!site) throw new AppError('not_found')
  const token = `bfj_${randomBytes(joinTokenSizeBytes).toString('base64url')}`
  const createdAt = clock()
  const row = await db.joinToken.create({
    data: {
      organizationId,
      siteId,
      createdByUserId,
      tokenHash: hashJoinToken(token),
      createdAt,
      expiresAt: new Date(createdAt.getTime() + joinTokenValidMs),
    },
    select: { id: true, expiresAt: true },
  })
  return { id: row.id, token, expiresAt: row.expiresAt.toISOString() }
}

const listedMax = 100

/** Returns the tokens of this site that can still be used. */
export async function listJoinTokens(
  { db, clock, actor: { organizationId } }: ServiceContext,
  { siteId }: z.output<typeof joinTokenListInput>,
): Promise<z.infer<typeof joinTokenList>> {
  const rows = await db.joinToken.findMany({
    where: { organizationId, siteId, usedAt: null, expiresAt: { gt: clock() } },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: listedMax,
    select: { id: true, createdAt: true, expiresAt: true, createdByUserId: true },
  })
  const ids = rows.flatMap(({ createdByUserId }) => createdByUserId ?? [])
  const people = await db.user.findMany({ where: { id: { in: ids } }, select: { id: true, name: true } })
  const names = new Map(people.map(({ id, name }) => [id, name]))
  return {
    items: rows.map(({ id, createdAt, expiresAt, createdByUserId }) => ({
      id,
      createdAt: createdAt.toISOString(),
      expiresAt: expiresAt.toISOString(),
      createdByName: names.get(createdByUserId ?? '') ?? null,
    })),
  }
}

/** The token ends at once. Throws `not_found`, and `conflict` for one that an edge has used. */
export async function revokeJoinToken(
  context: ServiceContext,
  { siteId, joinTokenId }: z.output<typeof joinTokenInput>,
): Promise<z.infer<typeof doneView>> {
  const { db, clock, actor } = context
  const now = clock()
  const own = { organizationId: actor.organizationId, siteId, id: joinTokenId }
  const known = await db.joinToken.findFirst({
    where: own,
    select: { expiresAt: true, site: { select: { name: true } } },
  })
  if (!known) throw new AppError('not_found')
  const { count } = await db.joinToken.updateMany({ where: { ...own, usedAt: null }, data: { expiresAt: now } })
  if (count === 0)
    throw new AppError('conflict', { public: 'An edge has already used this token. Revoke the edge instead.' })
  await recordChange(context, {
    kind: 'join_token',
    id: joinTokenId,
    name: `for ${known.site.name}`,
    before: { expiresAt: known.expiresAt },
    after: { expiresAt: now },
  })
  return done
}

/** Returns the state of a join token of this site; never the token itself. Throws `not_found`. */
export async function getJoinToken(
  { db, clock, actor: { organizationId } }: ServiceContext,
  { siteId, joinTokenId }: z.output<typeof joinTokenInput>,
): Promise<z.infer<typeof joinTokenView>> {
  const token = await db.joinToken.findUnique({
    where: { organizationId_id: { organizationId, id: joinTokenId }, siteId },
    select: { expiresAt: true, edge: { select: edgeSummarySelect } },
  })
  if (!token) throw new AppError('not_found')
  const now = clock()
  return {
    expiresAt: token.expiresAt.toISOString(),
    expired: !token.edge && token.expiresAt <= now,
    edge: token.edge ? edgeSummaryOf(token.edge, now) : null,
  }
}
