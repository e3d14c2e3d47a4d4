import { type Db, inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import { type DbOrTransaction, ownRow, type PlatformContext } from '../context/service-context.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'
import type { Clock } from '../rules/clock.ts'
import { dayMs } from '../rules/utc-day.ts'
import { moveToTrash } from '../trash/public.ts'
import { withVdiskHeld } from '../vdisk/public.ts'
import { endTransfers, judgeVersions, type Verdict } from './judge-versions.ts'

const keeperName = 'retention of versions'

/**
 * Moves the versions that retention lets go to the trash, of all organizations: when they leave it, edges get the jobs
 * that delete them. Repeating it does no harm.
 */
export async function deleteOldVersions({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_retention() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      const vdisks = await inOrganization(db, organizationId, (tenant) =>
        tenant.vdisk.findMany({
          where: { organizationId, keptReleases: { not: null } },
          orderBy: { id: 'asc' },
          select: { id: true },
        }),
      )
      const failures: unknown[] = []
      for (const { id } of vdisks)
        try {
          await deleteOfVdisk(db, { organizationId, id, clock })
        } catch (error) {
          failures.push(error)
        }
      // Of the others, what goes is gone. The next run tries again.
      if (failures.length > 0) throw failures[0]
    },
    rows.map(({ id }) => id),
  )
}

interface HeldVdisk {
  organizationId: string
  id: string
  clock: Clock
}

/** Looks before it locks: mostly nothing goes. */
async function deleteOfVdisk(db: Db, { organizationId, id, clock }: HeldVdisk): Promise<void> {
  const goes = await inOrganization(db, organizationId, async (tenant) => {
    const going = await judge({ db: tenant, clock, actor: { organizationId } }, id)
    return going !== null && going.verdicts.length > 0
  })
  if (!goes) return
  await inOrganization(db, organizationId, (tenant) => deleteHeld({ db: tenant, clock, actor: { organizationId } }, id))
}

/**
 * In one transaction, with the vDisk's row locked: steps of people wait, and find the version gone, or this finds what
 * they did. What does not lock the vDisk is refused by the database's triggers.
 */
function deleteHeld(context: JobContext, id: string): Promise<void> {
  return withVdiskHeld(context, { vdiskId: id }, async () => {
    const going = await judge(context, id)
    for (const verdict of going?.verdicts ?? [])
      if (going) await deleteVersion(context, { vdisk: going.vdisk, verdict })
  })
}

/** Returns the versions that go; null: none does, whatever it is. */
async function judge(context: JobContext, id: string): Promise<{ vdisk: RetainingVdisk; verdicts: Verdict[] } | null> {
  const vdisk = await context.db.vdisk.findUnique({
    where: ownRow(context.actor, id),
    select: { name: true, farmId: true, keptReleases: true, retentionTrashDays: true },
  })
  if (!vdisk || vdisk.keptReleases === null) return null
  const { name, farmId, keptReleases, retentionTrashDays } = vdisk
  const judged = await judgeVersions(context, { vdiskId: id, keptReleases, viewer: null })
  const verdicts = judged?.verdicts.filter(({ reason }) => reason === null) ?? []
  return { vdisk: { name, farmId, keptReleases, retentionTrashDays }, verdicts }
}

interface JobContext {
  db: DbOrTransaction
  clock: Clock
  actor: { organizationId: string }
}

interface RetainingVdisk {
  name: string
  farmId: string
  keptReleases: number
  retentionTrashDays: number
}

interface Deleted {
  vdisk: RetainingVdisk
  verdict: Verdict
}

async function deleteVersion(context: JobContext, { vdisk, verdict: { versionId, number } }: Deleted): Promise<void> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const now = clock()
  await endTransfers(context, versionId)
  const place = { farmId: vdisk.farmId, siteId: null, collectionId: null }
  const version = { kind: 'version' as const, id: versionId, name: `${vdisk.name} version ${number}`, place }
  const purgeAt = new Date(now.getTime() + vdisk.retentionTrashDays * dayMs)
  const by = { userId: null, userName: keeperName }
  const { counts } = await moveToTrash(db, { organizationId, by, now, purgeAt }, version)
  const { keptReleases } = vdisk
  await recordDoings({ db, now }, jobDoer(organizationId, keeperName), [
    { action: 'version.retire', ...version, before: { ...counts, keptReleases }, after: null },
  ])
}
