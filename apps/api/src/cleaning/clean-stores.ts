import { inOrganization } from '@bootfarm/db'
import { edgeOnlineWithinMs, storeJobsMax } from '@bootfarm/proto/uplink'
import { forEachOrganization } from '../context/for-each-organization.ts'
import { type DbOrTransaction, lockRow, type PlatformContext } from '../context/service-context.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'
import { isOpen } from '../placement/public.ts'
import { activeStates, whyNoWork } from '../store/public.ts'
import { type CleanedEdge, isDue, readCleaning } from './read-cleaning.ts'

const keeperName = 'cleaning of stores'

/**
 * Orders the jobs that free space in the stores of edges, of all organizations, each in its window. Repeating it does
 * no harm.
 */
export async function cleanStores({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_stores() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      const now = clock()
      const all = { organizationId, edgeId: null, now }
      const edges = await inOrganization(db, organizationId, (tenant) => readCleaning(tenant, all))
      for (const { id } of edges.filter((edge) => starts(edge, now)))
        await inOrganization(db, organizationId, (tenant) => order(tenant, { organizationId, edgeId: id, now }))
    },
    rows.map(({ id }) => id),
  )
}

function starts(edge: CleanedEdge, now: Date): boolean {
  const { name, agentVersion, heartbeat, heartbeatAt, rests, window, timeZone } = edge
  // The job of an edge that is away would start when it is back, at any time of day.
  const isHeard = heartbeatAt !== null && now.getTime() - heartbeatAt.getTime() < edgeOnlineWithinMs
  if (rests || !isHeard || !isDue(edge) || !isOpen(window, timeZone, now)) return false
  return whyNoWork({ name, agentVersion, heartbeat, revokedAt: null }, 'gc') === null
}

interface OrderedEdge {
  organizationId: string
  edgeId: string
  now: Date
}

/** Another API process may have been first. */
async function order(db: DbOrTransaction, { organizationId, edgeId, now }: OrderedEdge): Promise<void> {
  await lockRow(db, 'edge', { organizationId, id: edgeId, strength: 'no key update' })
  const [edge] = await readCleaning(db, { organizationId, edgeId, now })
  if (!edge || !starts(edge, now)) return
  const active = await db.storeJob.count({ where: { organizationId, edgeId, state: activeStates } })
  if (active >= storeJobsMax) return
  const { id } = await db.storeJob.create({
    data: { organizationId, edgeId, kind: 'gc', askedAt: now, askedByName: keeperName },
    select: { id: true },
  })
  await recordDoings({ db, now }, jobDoer(organizationId, keeperName), [
    {
      action: 'store_job.gc',
      kind: 'store_job',
      id,
      name: `gc on ${edge.name}`,
      place: { farmId: edge.farmId, siteId: edge.siteId, collectionId: null },
      before: null,
      after: { kind: 'gc', edge: edge.name, edgeId },
    },
  ])
}
