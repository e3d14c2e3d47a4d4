import { OrganizationsFailed } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'

const codeLengthMax = 60

/**
 * Runs a job and records its result for the installation's administrators: when it ran, how often it failed in a row,
 * for how many organizations, and the kind of error; its text stays in the log. The job's error is rethrown.
 */
export async function recordJob(context: PlatformContext, name: string, run: () => Promise<unknown>): Promise<void> {
  const { db, clock } = context
  try {
    await run()
  } catch (error) {
    const failure = { lastFailedAt: clock(), lastFailureCode: kindOf(error), failedOrganizationCount: 0 }
    if (error instanceof OrganizationsFailed) failure.failedOrganizationCount = error.failedCount
    await db.jobState.upsert({
      where: { name },
      create: { name, ...failure, failureCount: 1 },
      update: { ...failure, failureCount: { increment: 1 } },
      select: { name: true },
    })
    throw error
  }
  const success = { lastSucceededAt: clock(), failureCount: 0, failedOrganizationCount: 0 }
  await db.jobState.upsert({
    where: { name },
    create: { name, ...success },
    update: success,
    select: { name: true },
  })
}

/** SQLSTATE, Prisma's or Node's code, otherwise the error's class: none of them contains a tenant's text. */
function kindOf(error: unknown): string {
  const cause = error instanceof OrganizationsFailed ? error.cause : error
  if (!(cause instanceof Error)) return 'unknown'
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
  return /^[\w.-]+$/.test(code) ? code.slice(0, codeLengthMax) : 'unknown'
}
