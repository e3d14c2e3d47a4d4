import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { recordChanges } from '../events/record-change.ts'
import { resolveVersions } from '../rules/device/version-access.ts'
import {
  changedVersionNow,
  changeVdiskVersions,
  changeVersion,
  nextVersions,
  type OpenVdisk,
  type OpenVersion,
} from './open-version.ts'
import { dropWait, type PromotionStep, promotedNow, requireNoOtherWaits, startWaiting } from './promotion.ts'
import { writeVersions } from './version-facts.ts'
import type {
  ChangedVersion,
  cancelReleaseInput,
  clearOverrideInput,
  overrideInput,
  PromotedVersion,
  promoteInput,
  revertInput,
} from './version-schema.ts'
import type { VdiskVersions, VersionStep } from './version-steps.ts'

/**
 * Makes a version in test the default: once the edges of its placement hold it, now, or at a future instant; running
 * devices keep the version that they booted. Throws `not_found`; `invalid` for an instant that is past or too far
 * ahead; `conflict` for one that is not in test, or if another release is pending.
 */
export function promoteVersion(
  context: ServiceContext,
  { releaseAt, waitForPlacement, waitUntil, ...seen }: z.output<typeof promoteInput>,
): Promise<PromotedVersion> {
  return changeVersion(context, seen, async (open) => {
    const { versionId } = seen
    if (releaseAt) {
      await requireNoOtherWaits(context, open)
      await take(context, open, { kind: 'promote', versionId, releaseAt: new Date(releaseAt) })
      await dropWait(context, open.vdisk.id)
      return promotedNow(context, versionId, false)
    }
    return takeOrWait(context, open, {
      step: { kind: 'promote', versionId },
      waits: waitForPlacement ?? true,
      until: waitUntil,
    })
  })
}

interface Placing {
  step: PromotionStep
  waits: boolean
  until: string | undefined
}

async function takeOrWait(
  context: ServiceContext,
  open: OpenVersion,
  { step, waits, until }: Placing,
): Promise<PromotedVersion> {
  const wait = { step, until: until === undefined ? null : new Date(until) }
  const isWaiting = waits && (await startWaiting(context, open, wait))
  if (!isWaiting) await take(context, open, step)
  return promotedNow(context, step.versionId, isWaiting)
}

/** Cancels the pending release: the version is in test again. Throws `not_found`; `conflict` if none is pending. */
export function cancelRelease(
  context: ServiceContext,
  seen: z.output<typeof cancelReleaseInput>,
): Promise<ChangedVersion> {
  return changeVdiskVersions(context, seen, async (open) => {
    await take(context, open, { kind: 'cancelRelease' })
    return changedVersionNow(context, open.resolved.pending?.version.id ?? '')
  })
}

/**
 * A version that was released before is the default again, with its kernel, initramfs and command line: now, or once
 * the edges of its placement hold it. Throws `not_found`; `conflict` for the default itself, and for one that was never
 * released.
 */
export function revertVersion(
  context: ServiceContext,
  { waitForPlacement, waitUntil, ...seen }: z.output<typeof revertInput>,
): Promise<PromotedVersion> {
  return changeVersion(context, seen, (open) =>
    takeOrWait(context, open, {
      step: { kind: 'revert', versionId: seen.versionId },
      waits: waitForPlacement,
      until: waitUntil,
    }),
  )
}

/**
 * Production devices boot this version instead of the default until the override is cleared. Throws `not_found`;
 * `conflict` for a version that was never released, and for the override itself.
 */
export function overrideVersion(
  context: ServiceContext,
  seen: z.output<typeof overrideInput>,
): Promise<ChangedVersion> {
  return changeVersion(context, seen, async (open) => {
    await take(context, open, { kind: 'override', versionId: seen.versionId })
    return changedVersionNow(context, seen.versionId)
  })
}

/** Throws `not_found`; `conflict` where there is none. @returns what had been the override */
export function clearOverride(
  context: ServiceContext,
  seen: z.output<typeof clearOverrideInput>,
): Promise<ChangedVersion> {
  return changeVdiskVersions(context, seen, async (open) => {
    await take(context, open, { kind: 'clearOverride' })
    return changedVersionNow(context, open.resolved.override?.id ?? '')
  })
}

type ReleaseStep = Extract<VersionStep, { kind: 'promote' | 'cancelRelease' | 'revert' | 'override' | 'clearOverride' }>

/** Takes the step of the state machine, and records it. Throws its refusal. */
async function take(context: ServiceContext, open: OpenVdisk, step: ReleaseStep): Promise<void> {
  const next = nextVersions(open, step)
  const { organizationId } = context.actor
  await writeVersions(context.db, { organizationId, vdiskId: open.vdisk.id }, { before: open.versions, next })
  await record(context, open, { step, next })
}

/** Which of the vDisk's choices each step is about. */
const choiceOf = {
  promote: 'default',
  cancelRelease: 'pending',
  revert: 'default',
  override: 'override',
  clearOverride: 'override',
} as const

async function record(
  context: ServiceContext,
  { vdisk, place, versions, resolved, now }: OpenVdisk,
  { step, next }: { step: ReleaseStep; next: VdiskVersions },
): Promise<void> {
  const choice = step.kind === 'promote' && step.releaseAt ? 'pending' : choiceOf[step.kind]
  const after = resolveVersions(next, next.versions, now)
  const numbers = [resolved, after].map((one) => {
    const number = choice === 'pending' ? one.pending?.version.number : one[choice]?.number
    return { [choice]: number ?? null }
  })
  const released = next.versions.flatMap((version) => {
    const was = versions.versions.find(({ id }) => id === version.id)
    if (!was || (was.state === version.state && was.releasedAt === version.releasedAt)) return []
    return [
      {
        kind: 'version',
        id: version.id,
        name: `${vdisk.name} version ${version.number}`,
        place,
        before: { state: was.state, releasedAt: was.releasedAt },
        after: { state: version.state, releasedAt: version.releasedAt },
      },
    ]
  })
  await recordChanges(context, [
    ...released,
    { kind: 'vdisk', id: vdisk.id, name: vdisk.name, place, before: numbers[0] ?? null, after: numbers[1] ?? null },
  ])
}
