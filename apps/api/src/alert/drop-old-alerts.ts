import { inOrganization, Prisma } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'

const dayMs = 86_400_000
const closedKeptDays = 90
/** The longest time of an objective, and a day to spare. */
const objectiveHoursKeptDays = 91
/** The usual share needs a week; an open alert counts its boots from its first hour on. */
const causeHoursKeptDays = 30
/** Rows of one statement. */
const dropAtOnceMax = 10_000

/** Drops alerts that closed long ago, and counts that nothing reads any more. */
export async function dropOldAlerts({ db, clock }: PlatformContext): Promise<void> {
  const before = (days: number) => new Date(clock().getTime() - days * dayMs)
  const old = [
    { table: Prisma.sql`alert`, condition: Prisma.sql`closed_at < ${before(closedKeptDays)}` },
    { table: Prisma.sql`cause_hour`, condition: Prisma.sql`hour < ${before(causeHoursKeptDays)}` },
    { table: Prisma.sql`collection_cause_hour`, condition: Prisma.sql`hour < ${before(causeHoursKeptDays)}` },
    { table: Prisma.sql`objective_hour`, condition: Prisma.sql`hour < ${before(objectiveHoursKeptDays)}` },
  ]
  await forEachOrganization({ db }, async (organizationId) => {
    for (const { table, condition } of old)
      for (let count = dropAtOnceMax; count === dropAtOnceMax; )
        count = await inOrganization(
          db,
          organizationId,
          (tenant) => tenant.$executeRaw`delete from ${table} where ctid = any(array(
            select ctid from ${table} where organization_id = ${organizationId}::uuid and ${condition}
            limit ${dropAtOnceMax}))`,
        )
  })
}
