import type { DbTransaction } from '@bootfarm/db'
import { inEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { emit } from '../events/event-bus.ts'
import { medianOf } from './detect/spread.ts'
import { sentenceOf } from './finding-text.ts'
import { classKeyOf, classTextOf, readBootsAround } from './read-watched-boots.ts'
import { type FindingRow, findingSelect } from './rows.ts'
import { findingEvidence } from './schema.ts'

/** Findings of an organization that one run looks at: those that were not looked at for longest. */
const findingsAtOnce = 20
/** Fewer boots do not show that it is over. */
const bootsMin = 20
const bootsRead = 200
const bootsUsed = 30
const dayMs = 86_400_000
/** Closed findings are kept like a year's history of a site. */
const closedKeptDays = 365
/** A class without boots is forgotten: boots after that long a pause are others. */
const classKeptDays = 60

/** Closes findings whose boots are as before again, and drops what is old. */
export async function checkFindings({ db, clock }: PlatformContext): Promise<void> {
  const now = clock()
  const before = (days: number) => new Date(now.getTime() - days * dayMs)
  await inEachOrganization({ db }, async (tenant, organizationId) => {
    await tenant.finding.deleteMany({ where: { organizationId, closedAt: { lt: before(closedKeptDays) } } })
    await tenant.bootClass.deleteMany({ where: { organizationId, updatedAt: { lt: before(classKeptDays) } } })
    const rows = await tenant.finding.findMany({
      where: { organizationId, closedAt: null },
      orderBy: { checkedAt: 'asc' },
      take: findingsAtOnce,
      select: findingSelect,
    })
    for (const row of rows) await checkOne(tenant, { organizationId, row, now })
  })
}

async function checkOne(
  db: DbTransaction,
  { organizationId, row, now }: { organizationId: string; row: FindingRow; now: Date },
): Promise<void> {
  const where = { organizationId_id: { organizationId, id: row.id } }
  const isOver = await areBootsAsBefore(db, { organizationId, row, now })
  if (!isOver) {
    await db.finding.update({ where, data: { checkedAt: now }, select: { id: true } })
    return
  }
  const data = { state: 'closed' as const, closedAt: now, checkedAt: now, revision: { increment: 1 } }
  await db.finding.update({ where, data, select: { id: true } })
  const sentence = sentenceOf(row.kind, row.valueName, findingEvidence.parse(row.evidence))
  await emit('findingChanged', { db, now, finding: { ...row, organizationId, sentence, state: 'closed' } })
}

/** The newest boots of the class since it was found, whatever they have: half of the shift is gone. */
async function areBootsAsBefore(
  db: DbTransaction,
  { organizationId, row, now }: { organizationId: string; row: FindingRow; now: Date },
): Promise<boolean> {
  const { siteId, vdiskId, openedAt, kind } = row
  const { total, before, after, failedBefore, failedAfter } = findingEvidence.parse(row.evidence)
  const newest = await readBootsAround(db, {
    organizationId,
    siteId,
    vdiskId,
    at: now,
    side: 'before',
    limit: bootsRead,
  })
  const boots = newest
    .filter((boot) => boot.startedAt > openedAt && classTextOf(classKeyOf(boot)) === classTextOf(row))
    .slice(0, bootsUsed)
  if (boots.length < bootsMin) return false
  if (kind === 'failing') {
    const rateOf = (failed: number, count: number) => failed / Math.max(1, count)
    const middle = (rateOf(failedBefore, before.length) + rateOf(failedAfter, after.length)) / 2
    return boots.filter(({ outcome }) => outcome !== 'ready').length / boots.length < middle
  }
  const ready = boots.filter(({ outcome }) => outcome === 'ready').map(({ totalUs }) => Number(totalUs))
  return total !== null && ready.length >= bootsMin && medianOf(ready) < (total.beforeUs + total.afterUs) / 2
}
