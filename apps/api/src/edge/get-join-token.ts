import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { edgeSummaryOf, edgeSummarySelect } from './rows.ts'
import type { joinTokenInput, joinTokenView } from './schema.ts'

/** What has become of a join token of this site; never the token itself. Throws `not_found`. */
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
