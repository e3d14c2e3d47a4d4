import { at, type Claim, clip, ranks } from './claim.ts'
import { type OwnerName, ownerOf } from './owners.ts'
import { type LoaderStepName, loaderStepsMax, type TracedBoot, type TracedPhase, transfersMax } from './traced-boot.ts'

const stepOwners: Record<LoaderStepName, OwnerName> = {
  dhcp: 'loader_dhcp',
  script: 'loader_script',
  kernel: 'loader_kernel',
  initrd: 'loader_initrd',
  other: 'loader',
}

const stepNames: Record<LoaderStepName, string> = {
  dhcp: 'its DHCP exchange',
  script: 'the script',
  kernel: 'the kernel',
  initrd: 'the initramfs',
  other: 'further files',
}

/**
 * The parts of the loader's phase: what it downloads, and between that what it does by itself. Empty from older edges.
 */
export function loaderClaims(boot: TracedBoot, phase: TracedPhase, endUs: number): Claim[] {
  const { loaderSteps, menuEntry } = boot
  const steps = loaderSteps.slice(0, loaderStepsMax).sort((a, b) => a.startUs - b.startUs)
  if (steps.length === 0) return []
  const claims: Claim[] = []
  let doneUs = phase.startUs
  let done = 'the boot program'
  for (const [index, { name, startUs, durationUs }] of steps.entries()) {
    const pause = index === 0 ? 'loader_start' : menuEntry === null || name === 'dhcp' ? 'loader_pause' : 'boot_menu'
    claims.push({
      fromUs: doneUs,
      toUs: startUs,
      rank: ranks.loader,
      owner: ownerOf(pause),
      source: 'observed',
      evidence: `The last packet of ${done} passed at ${at(doneUs)}, the first of ${stepNames[name]} at ${at(startUs)}.`,
    })
    // Of a step whose end nobody saw, the next one is the end: GRUB looks for modules that it can do without.
    const stepEndUs = durationUs === null ? (steps[index + 1]?.startUs ?? endUs) : startUs + durationUs
    claims.push({
      fromUs: startUs,
      toUs: stepEndUs,
      rank: ranks.loaderStep,
      owner: ownerOf(stepOwners[name]),
      source: 'observed',
      evidence: `The edge served ${stepNames[name]} from ${at(startUs)} to ${at(stepEndUs)}${filesIn(boot, startUs, stepEndUs)}.`,
    })
    if (stepEndUs < doneUs) continue
    doneUs = stepEndUs
    done = stepNames[name]
  }
  return [...claims, ...bootCommandClaims(boot, { fromUs: doneUs, toUs: endUs })].map((claim) =>
    clip(claim, { fromUs: phase.startUs, toUs: endUs }),
  )
}

/** From the last download to the script's last command, and its one request. */
function bootCommandClaims({ bootCommandUs }: TracedBoot, { fromUs, toUs }: { fromUs: number; toUs: number }): Claim[] {
  if (bootCommandUs === null) return []
  const evidence = `Its last download ended at ${at(fromUs)}; its script reached the start of the kernel at ${at(bootCommandUs)}.`
  return [
    { fromUs, toUs: bootCommandUs, rank: ranks.loader, owner: ownerOf('loader_last'), source: 'observed', evidence },
    {
      fromUs: bootCommandUs,
      toUs,
      rank: ranks.loaderStep,
      owner: ownerOf('boot_command'),
      source: 'observed',
      evidence: `It asked for the file “start” at ${at(bootCommandUs)} and had it at ${at(toUs)}.`,
    },
  ]
}

/** More names would hide the sentence that they are in. */
const namesMax = 3

/** Names the files that the device requested within a step. */
function filesIn({ transfers }: TracedBoot, fromUs: number, toUs: number): string {
  const names = transfers
    .slice(0, transfersMax)
    .filter(({ startUs, bytes }) => bytes > 0 && startUs >= fromUs && startUs <= toUs)
    .map(({ name }) => `“${name}”`)
  if (names.length === 0) return ''
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more` : ''
  return `: ${names.slice(0, namesMax).join(', ')}${more}`
}

/** Tells whether a silence is inside of a download. */
export function isInDownload({ loaderSteps }: TracedBoot, atUs: number): boolean {
  return loaderSteps
    .slice(0, loaderStepsMax)
    .some(({ startUs, durationUs }) => atUs >= startUs && durationUs !== null && atUs < startUs + durationUs)
}

export function routerClaim({ atUs, durationUs, solicitations }: NonNullable<TracedBoot['routerWait']>): Claim {
  const isHeard = solicitations > 0
  return {
    fromUs: atUs,
    toUs: atUs + durationUs,
    rank: ranks.pause,
    owner: ownerOf('loader_router'),
    source: isHeard ? 'observed' : 'inferred',
    evidence: isHeard
      ? `The edge heard ${solicitations} router solicitations of the device, which nobody answered.`
      : 'The pause is as long as iPXE searches for a router; the edge heard no solicitation.',
  }
}
