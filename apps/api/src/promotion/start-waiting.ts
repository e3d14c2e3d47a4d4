import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { lackingEdges } from '../placement/public.ts'
import { dayMs } from '../rules/utc-day.ts'
import { conflict, nextVersions, type OpenVersion, readPromotion } from '../vdisk/public.ts'

/** Promotions and reverts that wait until the edges of the vDisk's placement hold the version. */

/** Lines of sites are slow, and an edge may be away for a weekend. */
const waitsMs = 7 * dayMs
const waitsMaxMs = 31 * dayMs

export interface PromotionStep {
  kind: 'promote' | 'revert'
  versionId: string
}

interface Wait {
  step: PromotionStep
  /** Null: for the usual time. */
  until: Date | null
}

/**
 * Lets a step wait, if edges lack its version. It replaces the vDisk's step that waits already: the newest decision
 * holds. Throws the refusal of the step; `conflict` while a release is pending; `invalid` for an instant that is past
 * or too far ahead.
 * @returns false if no edge lacks the version: the step can be taken now
 */
export async function startWaiting(
  context: ServiceContext,
  open: OpenVersion,
  { step, until }: Wait,
): Promise<boolean> {
  const { db, actor } = context
  const { vdisk, version, place, resolved, now } = open
  const { organizationId } = actor
  nextVersions(open, step)
  const waitsUntil = until ?? new Date(now.getTime() + waitsMs)
  requireAhead(waitsUntil, now)
  const key = { organizationId, vdiskId: vdisk.id }
  const lacking = await lackingEdges(db, { ...key, versionId: version.id, now })
  if (lacking.length === 0) return false
  if (resolved.pending)
    throw conflict(
      `Version ${resolved.pending.version.number} is to be released at ${resolved.pending.at.toISOString()}: take that back first.`,
    )
  const before = await readPromotion(db, key)
  const row = {
    versionId: version.id,
    step: step.kind,
    askedAt: now,
    askedByName: actor.userName,
    waitsUntil,
    givenUpAt: null,
    givenUpReason: null,
  }
  await db.waitingPromotion.upsert({
    where: { organizationId_vdiskId: key },
    create: Object.assign({}, key, row),
    update: row,
    select: { vdiskId: true },
  })
  await raiseRevision(context, vdisk.id)
  await recordChange(context, {
    kind: 'vdisk',
    id: vdisk.id,
    name: vdisk.name,
    place,
    before: { promotion: before && { version: before.version.number, step: before.step } },
    after: { promotion: { version: version.number, step: step.kind, until: waitsUntil, lackingCount: lacking.length } },
  })
  return true
}

function requireAhead(until: Date, now: Date): void {
  if (until <= now)
    throw new AppError('invalid', { public: 'The end of the wait lies in the past. Leave it out for seven days.' })
  if (until.getTime() > now.getTime() + waitsMaxMs)
    throw new AppError('invalid', { public: 'A promotion waits for at most 31 days.' })
}

/** Throws `conflict` if another version waits: a release at a set time would be overtaken by it. */
export async function requireNoOtherWaits(context: ServiceContext, { vdisk, version }: OpenVersion): Promise<void> {
  const row = await readPromotion(context.db, { organizationId: context.actor.organizationId, vdiskId: vdisk.id })
  if (row && row.givenUpAt === null && row.versionId !== version.id)
    throw conflict(`Version ${row.version.number} waits for its copies at edges: cancel its promotion first.`)
}

/** Ends the wait of a version whose release is set to a time instead. */
export async function dropWait({ db, actor }: ServiceContext, vdiskId: string): Promise<void> {
  await db.waitingPromotion.deleteMany({ where: { organizationId: actor.organizationId, vdiskId } })
}

/** Others who change the vDisk's versions have to see it first. */
export async function raiseRevision({ db, actor: { organizationId } }: ServiceContext, vdiskId: string): Promise<void> {
  await db.vdisk.update({
    where: { organizationId_id: { organizationId, id: vdiskId } },
    data: { revision: { increment: 1 } },
    select: { id: true },
  })
}
