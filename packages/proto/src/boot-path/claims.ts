import { bootPhases } from '../boot-phases.ts'
import { unitChain } from './chain.ts'
import { at, type Claim, clip, ranks, seconds } from './claim.ts'
import { routerClaim } from './loader-claims.ts'
import { ownerOf } from './owners.ts'
import { phaseClaims } from './phase-claims.ts'
import { stepsMax, type TracedBoot, type TracedStep } from './traced-boot.ts'

/** Everything that is known of where a boot's time went. At most 160 claims, whatever the boot is. */
export function claimsOf(boot: TracedBoot, totalUs: number): Claim[] {
  return [
    ...phaseClaims(boot, totalUs),
    ...(boot.routerWait ? [routerClaim(boot.routerWait)] : []),
    ...stepClaims(boot, totalUs),
    ...failOverClaims(boot),
  ]
}

/** In a fail-over the device's edge was silent until another one took over. */
function failOverClaims({ handOver, phases }: TracedBoot): Claim[] {
  if (!handOver) return []
  const { atUs } = handOver
  const silence = phases
    .flatMap(({ gaps }) => [...gaps])
    .find((gap) => gap.atUs <= atUs && gap.atUs + gap.durationUs >= atUs)
  if (!silence) return []
  return [
    {
      fromUs: silence.atUs,
      toUs: atUs,
      rank: ranks.failOver,
      owner: ownerOf('fail_over'),
      source: 'observed',
      evidence: `No traffic from ${at(silence.atUs)} until the second edge took over at ${at(atUs)}.`,
    },
  ]
}

/**
 * The device's own report, which counts only where the edge could not look inside: from the last byte for the loader
 * until ready. A device that lies moves its own time about in there, and nothing else.
 */
function stepClaims(boot: TracedBoot, totalUs: number): Claim[] {
  const { guest, phases, bootCommandUs } = boot
  if (!guest) return []
  const steps = guest.steps.slice(0, stepsMax).filter(({ group }) => group !== 'firmware')
  if (steps.length === 0) return []
  const window = osWindow(phases, totalUs)
  const handOver = handOverClaim({ kernelStartUs: guest.kernelStartUs, bootCommandUs }, window)
  const claims = [handOver, ...nested(steps).map((step) => claimOfStep(boot, step))]
  const units = unitChain(steps, window.toUs).map(
    (unit): Claim => ({
      ...spanOf(unit),
      rank: ranks.unit,
      owner: ownerOf('unit', unit.name),
      source: 'reported',
      evidence: `The device reports that it ran from ${at(unit.startUs)} to ${at(unit.startUs + unit.durationUs)}.`,
    }),
  )
  return [...claims, ...units].map((claim) => clip(claim, window))
}

/** Of nested steps the shortest says most: it ranks highest. */
function nested(steps: readonly TracedStep[]): { step: TracedStep; order: number }[] {
  return steps
    .filter(({ group }) => group !== 'unit')
    .sort((a, b) => b.durationUs - a.durationUs)
    .map((step, index) => ({ step, order: index / stepsMax }))
}

function claimOfStep({ readTimes }: TracedBoot, { step, order }: { step: TracedStep; order: number }): Claim {
  const owner = step.group === 'kernel' ? ownerOf('kernel') : ownerOf(ownerName(step), step.name)
  const reads = readTimes?.phases.find(({ name }) => name === step.group)
  const waited = reads?.wait ? ` It waited ${seconds(reads.wait.sumUs)} for all disk reads of its part.` : ''
  const evidence = `The device reports the step “${step.name}” from ${at(step.startUs)}.${waited}`
  return { ...spanOf(step), rank: ranks.step + order, owner, source: 'reported', evidence }
}

function ownerName({ group }: TracedStep): 'initramfs' | 'system' {
  return group === 'initramfs' ? 'initramfs' : 'system'
}

function spanOf({ startUs, durationUs }: TracedStep): { fromUs: number; toUs: number } {
  return { fromUs: startUs, toUs: startUs + durationUs }
}

interface Window {
  fromUs: number
  toUs: number
}

interface HandOver {
  kernelStartUs: number
  bootCommandUs: number | null
}

/**
 * The start is seen where the boot program says that its last command follows. Without that it is inferred: the
 * boot program may have done anything after its last download.
 */
function handOverClaim({ kernelStartUs, bootCommandUs }: HandOver, { fromUs }: Window): Claim {
  const isSeen = bootCommandUs !== null && bootCommandUs <= fromUs
  const start = isSeen
    ? `The boot program said at ${at(bootCommandUs)} that it starts the kernel`
    : `The last byte for the boot program was acknowledged at ${at(fromUs)}`
  return {
    fromUs,
    toUs: kernelStartUs,
    rank: ranks.handOver,
    owner: ownerOf('kernel_hand_over'),
    source: isSeen ? 'reported' : 'inferred',
    evidence: `${start}; by the device’s report its kernel's clock started at ${at(kernelStartUs)}.`,
  }
}

/** From the last byte for the loader to the end: there the edge sees reads only. */
function osWindow(phases: TracedBoot['phases'], totalUs: number): Window {
  const breather = bootPhases.indexOf('breather')
  const loaded = phases
    .filter(({ name }) => bootPhases.indexOf(name) < breather)
    .map(({ startUs, durationUs }) => startUs + (durationUs ?? 0))
  return { fromUs: Math.min(totalUs, Math.max(0, ...loaded)), toUs: totalUs }
}
