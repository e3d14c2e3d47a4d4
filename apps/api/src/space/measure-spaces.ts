import { inOrganization } from '@bootfarm/db'
import { edgeOnlineWithinMs } from '@bootfarm/proto/uplink'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { DbOrTransaction, PlatformContext } from '../context/service-context.ts'
import { emit, type FillingEdge } from '../events/event-bus.ts'
import { warningOf } from './forecast.ts'
import { forecastOf, readSpaces } from './read-space.ts'

const dayMs = 86_400_000
const sampleEveryMs = 6 * 3_600_000
const samplesKeptDays = 60

/**
 * Keeps samples of the free space of edges' stores, and warns of those that become full, once for each time. Repeating
 * it does no harm.
 */
export async function measureSpaces({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_stores() as id`
  await forEachOrganization(
    { db },
    (organizationId) =>
      inOrganization(db, organizationId, async (tenant) => {
        const now = clock()
        await keepSamples(tenant, { organizationId, now })
        await warn(tenant, { organizationId, now })
      }),
    rows.map(({ id }) => id),
  )
}

interface At {
  organizationId: string
  now: Date
}

/** One in six hours: the first one counts. */
async function keepSamples(db: DbOrTransaction, { organizationId, now }: At): Promise<void> {
  const measuredAt = new Date(Math.floor(now.getTime() / sampleEveryMs) * sampleEveryMs)
  await db.$executeRaw`
    insert into edge_space (organization_id, edge_id, measured_at, free_bytes, total_bytes)
    select organization_id, id, ${measuredAt}, (heartbeat->'machine'->>'storeFreeBytes')::bigint,
      (heartbeat->'machine'->>'storeTotalBytes')::bigint
    from edge where organization_id = ${organizationId}::uuid and revoked_at is null and heartbeat->'machine' is not null
      and heartbeat_at > ${new Date(now.getTime() - edgeOnlineWithinMs)}
    on conflict do nothing`
  await db.$executeRaw`
    delete from edge_space where organization_id = ${organizationId}::uuid
      and measured_at < ${new Date(now.getTime() - samplesKeptDays * dayMs)}`
}

async function warn(db: DbOrTransaction, { organizationId, now }: At): Promise<void> {
  const told: FillingEdge[] = []
  for (const edge of await readSpaces(db, { organizationId, edgeId: null, now })) {
    const { space, pendingBytes, fillingToldAt } = edge
    const forecast = forecastOf(edge, now)
    if (!space || !forecast) continue
    const { days, usable } = forecast
    const isTold = fillingToldAt !== null
    const reason = warningOf(space, { days, pendingBytes, isTold })
    if ((reason !== null) === isTold) continue
    // Another API process may have been first.
    const changed = await db.edge.updateMany({
      where: { organizationId, id: edge.id, fillingToldAt: isTold ? { not: null } : null },
      data: { fillingToldAt: reason === null ? null : now },
    })
    if (reason === null || changed.count === 0) continue
    const { id, name, siteId, siteName, farmId } = edge
    const fullAt = days === null ? null : new Date(now.getTime() + days * dayMs)
    told.push({ id, name, siteId, siteName, farmId, reason, fullAt, pendingBytes, usableBytes: usable, ...space })
  }
  if (told.length > 0) await emit('storesFill', { db, now, organizationId, edges: told })
}
