import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { recordChanges } from '../events/record-change.ts'
import { resolveVersions } from '../rules/device/version-access.ts'
import { changedVersionNow, changeVdiskVersions, changeVersion, nextVersions, type OpenVdisk } from './open-version.ts'
import { writeVersions } from './version-facts.ts'
import type { ChangedVersion, cancelReleaseInput, clearOverrideInput, overrideInput } from './version-schema.ts'
import type { VdiskVersions, VersionStep } from './version-steps.ts'

/** Cancels the pending release: the version is in test again. Throws `not_found`; `conflict` if none is pending. */
export function cancelRelease(
  context: ServiceContext,
  seen: z.output<typeof cancelReleaseInput>,
): Promise<ChangedVersion> {
  return changeVdiskVersions(context, seen, async (open) => {
    await takeStep(context, open, { kind: 'cancelRelease' })
    return changedVersionNow(context, open.resolved.pending?.version.id ?? '')
  })
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
    await takeStep(context, open, { kind: 'override', versionId: seen.versionId })
    return changedVersionNow(context, seen.versionId)
  })
}

/** Throws `not_found`; `conflict` where there is none. @returns what had been the override */
export function clearOverride(
  context: ServiceContext,
  seen: z.output<typeof clearOverrideInput>,
): Promise<ChangedVersion> {
  return changeVdiskVersions(context, seen, async (open) => {
    await takeStep(context, open, { kind: 'clearOverride' })
    return changedVersionNow(context, open.resolved.override?.id ?? '')
  })
}

type ReleaseStep = Extract<VersionStep, { kind: 'promote' | 'cancelRelease' | 'revert' | 'override' | 'clearOverride' }>

/** Takes the step of the state machine, and records it. Throws its refusal. */
export async function takeStep(context: ServiceContext, open: OpenVdisk, step: ReleaseStep): Promise<void> {
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
