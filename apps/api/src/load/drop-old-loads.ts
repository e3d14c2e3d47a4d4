import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { minuteStep, minutesKeptDays, quarterStep, quartersKeptDays } from './load-steps.ts'

const dayMs = 86_400_000
/** Rows of one statement. */
const dropAtOnceMax = 10_000

/** Drops loads of edges that are older than they are kept. @returns how many */
export async function dropOldLoads({ db, clock }: PlatformContext): Promise<number> {
  const now = clock().getTime()
  const kept = [
    [minuteStep, new Date(now - minutesKeptDays * dayMs)],
    [quarterStep, new Date(now - quartersKeptDays * dayMs)],
  ] as const
  let dropped = 0
  await forEachOrganization({ db }, async (organizationId) => {
    for (const [step, before] of kept)
      for (let count = dropAtOnceMax; count === dropAtOnceMax; dropped += count)
        count = await inOrganization(
          db,
          organizationId,
          (transaction) => transaction.$executeRaw`
            delete from edge_load where ctid = any(array(
              select ctid from edge_load where organization_id = ${organizationId}::uuid
                and step_minutes = ${step}::smallint and at < ${before} order by at limit ${dropAtOnceMax}))`,
        )
  })
  return dropped
}
