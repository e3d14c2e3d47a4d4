import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { changedVersionNow, changeVersion, type OpenVersion, takeStep } from '../vdisk/public.ts'
import type { PromotedVersion, promoteInput, revertInput } from './schema.ts'
import { dropWait, type PromotionStep, requireNoOtherWaits, startWaiting } from './start-waiting.ts'

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
      await takeStep(context, open, { kind: 'promote', versionId, releaseAt: new Date(releaseAt) })
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
  if (!isWaiting) await takeStep(context, open, step)
  return promotedNow(context, step.versionId, isWaiting)
}

async function promotedNow(context: ServiceContext, versionId: string, isWaiting: boolean): Promise<PromotedVersion> {
  return Object.assign(await changedVersionNow(context, versionId), { isWaiting })
}
