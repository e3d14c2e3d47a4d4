import { usersText } from '../context/in-use.ts'
import { type DbOrTransaction, ownRow } from '../context/service-context.ts'
import type { Actor } from '../rules/actor.ts'
import type { Clock } from '../rules/clock.ts'
import { resolveVersions } from '../rules/device/version-access.ts'
import { activeStates } from '../store/public.ts'
import { onlyVisible, versionChoicesSelect, versionFactsSelect, versionHolders } from '../vdisk/public.ts'
import { type KeepReason, keptVersions } from './retention-rule.ts'

/** Looking for what uses a version takes some ten queries. When the oldest are gone, the next runs look at others. */
const judgedAtOnceMax = 100

/** The job's own: they end when the version goes. */
const transferKinds = { in: ['pack' as const, 'fetch' as const] }

export interface Verdict {
  versionId: string
  number: number
  releasedAt: Date | null
  /** Null: it goes. */
  reason: KeepReason | null
}

export interface Judged {
  /** The newest first. */
  verdicts: Verdict[]
  /** Versions that were not decided about. */
  waitingCount: number
}

interface JudgeContext {
  db: DbOrTransaction
  clock: Clock
  actor: { organizationId: string }
}

interface JudgedVdisk {
  vdiskId: string
  keptReleases: number
  /** Names what uses a version as far as this person sees it; null: all. */
  viewer: Actor | null
}

/** Decides about the versions of a vDisk, the oldest first; null if it does not exist. */
export async function judgeVersions(
  context: JudgeContext,
  { vdiskId, keptReleases, viewer }: JudgedVdisk,
): Promise<Judged | null> {
  const { db, clock, actor } = context
  const vdisk = await db.vdisk.findUnique({
    where: ownRow(actor, vdiskId),
    select: {
      ...versionChoicesSelect,
      versions: { orderBy: { number: 'asc' }, select: { ...versionFactsSelect, isProtected: true } },
    },
  })
  if (!vdisk) return null
  const kept = keptVersions(vdisk.versions, resolveVersions(vdisk, vdisk.versions, clock()), keptReleases)
  const verdicts: Verdict[] = []
  let judged = 0
  let waitingCount = 0
  for (const { id: versionId, number, releasedAt } of vdisk.versions) {
    let reason = kept.get(versionId) ?? null
    if (reason === null && judged === judgedAtOnceMax) {
      waitingCount += 1
      continue
    }
    if (reason === null) {
      judged += 1
      reason = await useOf(context, versionId, viewer)
    }
    verdicts.push({ versionId, number, releasedAt, reason })
  }
  return { verdicts: verdicts.reverse(), waitingCount }
}

async function useOf(context: JudgeContext, versionId: string, viewer: Actor | null): Promise<KeepReason | null> {
  const { organizationId } = context.actor
  const base = await context.db.storeJob.findFirst({
    where: { organizationId, state: activeStates, baseVersionId: versionId, edge: { revokedAt: null } },
    select: { edge: { select: { name: true } } },
  })
  if (base) return used(`an edge that fetches or packs a version based on it (${base.edge.name})`)
  const all = await usesOf(context, versionId, undefined)
  if (all.length === 0) return null
  const seen = viewer ? await usesOf(context, versionId, onlyVisible(viewer)) : all
  return used(seen.length > 0 ? seen.join(' and ') : 'something that you may not see')
}

async function usesOf(
  context: JudgeContext,
  versionId: string,
  seen: ReturnType<typeof onlyVisible> | undefined,
): Promise<string[]> {
  const { db, actor } = context
  const users = await versionHolders(context, versionId, seen)
  // Those that bring copies of it to more edges do not keep it.
  const transfers = await db.storeJob.count({
    where: { organizationId: actor.organizationId, state: 'queued', kind: transferKinds, versionId },
  })
  return users.flatMap((one) => {
    const text =
      one.noun === 'unfinished store job' ? (one.count > transfers ? 'an unfinished store job' : null) : usersText(one)
    return text ?? []
  })
}

function used(by: string): KeepReason {
  return { kind: 'used', text: `It is used by ${by}.` }
}

/** Ends the transfers of a version that goes. */
export async function endTransfers(
  { db, clock, actor: { organizationId } }: JudgeContext,
  versionId: string,
): Promise<void> {
  await db.storeJob.updateMany({
    where: { organizationId, state: 'queued', kind: transferKinds, versionId },
    data: { state: 'cancelled', endedAt: clock(), message: 'The version was deleted by retention.' },
  })
}
