import { type BootPhase, bootPhases, bootPhaseText } from '../boot-phases.ts'
import { at, type Claim, ranks, seconds } from './claim.ts'
import { isInDownload, loaderClaims, routerClaim } from './loader-claims.ts'
import { type OwnerName, ownerOf } from './owners.ts'
import { gapsMax, offersMax, phasesMax, type TracedBoot, type TracedPhase } from './traced-boot.ts'

/** iPXE solicits a router several times: 13 to 17 s in emulated machines. Other programs pause less, or far longer. */
const routerPauseUs = { min: 8_000_000, max: 30_000_000 }
/** Silences shorter than this are part of an exchange. */
const pauseUsMin = 50_000

/** What the edge saw: phases, the silences in them and between them. */
export function phaseClaims(boot: TracedBoot, totalUs: number): Claim[] {
  const phases = inOrder(boot.phases)
  return phases.flatMap((phase, index) => [
    ...betweenClaim(boot, { before: phases[index - 1], phase, totalUs }),
    claimOfPhase(boot, phase, totalUs),
    ...(phase.name === 'dhcp' ? offerClaims(boot, phase) : []),
    ...(phase.name === 'loader' ? loaderClaims(boot, phase, endOf(phase) ?? totalUs) : []),
    ...phase.gaps.slice(0, gapsMax).map((gap) => claimOfGap(boot, phase, gap)),
  ])
}

/** One phase of each name, in the order of the chain. */
function inOrder(phases: readonly TracedPhase[]): TracedPhase[] {
  return phases
    .slice(0, phasesMax)
    .filter(({ name }) => name !== 'ready')
    .sort((a, b) => bootPhases.indexOf(a.name) - bootPhases.indexOf(b.name))
}

const phaseOwners: Record<Exclude<BootPhase, 'ready'>, OwnerName> = {
  firmware: 'power_on',
  dhcp: 'dhcp',
  nbp: 'nbp',
  loader: 'loader',
  stage1: 'stage1',
  breather: 'kernel_unreported',
  stage2: 'stream',
}

function claimOfPhase({ readTimes }: TracedBoot, phase: TracedPhase, totalUs: number): Claim {
  const { name, startUs, source } = phase
  const wait = name === 'stage2' ? readTimes?.wait : null
  return {
    fromUs: startUs,
    toUs: endOf(phase) ?? totalUs,
    rank: ranks.phase + bootPhases.indexOf(name),
    owner: ownerOf(phaseOwners[name as Exclude<BootPhase, 'ready'>]),
    source,
    evidence: `Phase “${bootPhaseText(name).title}” from ${at(startUs)}, ${bootPhaseText(name).begins}${countsOf(phase)}.${
      wait ? ` Its system waited ${seconds(wait.sumUs)} for disk reads.` : ''
    }`,
  }
}

/** Repeats are why an exchange takes long; a phase without any needs no numbers. */
function countsOf({ retries, missingFragments, reads }: TracedPhase): string {
  const counts = [
    ...(reads > 0 ? [`${reads} reads`] : []),
    ...(retries > 0 ? [`${retries} retransmissions`] : []),
    ...(missingFragments > 0 ? [`${missingFragments} lost packets`] : []),
  ]
  return counts.length === 0 ? '' : `, with ${counts.join(', ')}`
}

function endOf({ startUs, durationUs }: TracedPhase): number | null {
  return durationUs === null ? null : startUs + durationUs
}

/** Who is silent between one phase and the next: the last word before it was the edge's. */
const ownersBefore: Record<BootPhase, OwnerName> = {
  firmware: 'power_on',
  dhcp: 'power_on',
  nbp: 'firmware_pause',
  loader: 'loader_gap',
  stage1: 'loader_gap',
  breather: 'kernel_hand_over',
  stage2: 'kernel_unreported',
  ready: 'stream',
}

interface Neighbours {
  before: TracedPhase | undefined
  phase: TracedPhase
  totalUs: number
}

function betweenClaim(boot: TracedBoot, { before, phase, totalUs }: Neighbours): Claim[] {
  const fromUs = before ? (endOf(before) ?? totalUs) : 0
  if (fromUs >= phase.startUs) return []
  if (before && phase.name === 'loader' && isRouterPause(boot, phase.startUs - fromUs))
    return [routerClaim({ atUs: fromUs, durationUs: phase.startUs - fromUs, solicitations: 0 })]
  // The report leaves out early phases if it is too long: nothing says what was there.
  const owner = ownerOf(before ? ownersBefore[phase.name] : 'unattributed')
  const last = before ? `${bootPhaseText(before.name).title} ended at ${at(fromUs)}` : 'The report begins later'
  return [
    {
      fromUs,
      toUs: phase.startUs,
      rank: ranks.between,
      owner,
      source: before && isRequested(phase) ? 'observed' : 'inferred',
      evidence: `${last}, and the device’s next packet came at ${at(phase.startUs)}.`,
    },
  ]
}

/** Older edges do not report it: a pause before the loader's first request, as long as iPXE's. */
function isRouterPause({ routerWait, menuEntry }: TracedBoot, us: number): boolean {
  return routerWait === null && menuEntry === null && us >= routerPauseUs.min && us <= routerPauseUs.max
}

/** The device begins these by a request: until then it was its turn. */
function isRequested({ name }: TracedPhase): boolean {
  return name === 'nbp' || name === 'loader' || name === 'stage1'
}

/** The DHCP server that answers last holds up the exchange; after it, the firmware waits for more. */
function offerClaims({ offers }: TracedBoot, dhcp: TracedPhase): Claim[] {
  const endUs = endOf(dhcp)
  const heard = offers
    .slice(0, offersMax)
    .filter(({ atUs }) => atUs >= dhcp.startUs && (endUs === null || atUs <= endUs))
    .sort((a, b) => a.atUs - b.atUs)
  const last = heard.at(-1)
  if (!last) return []
  const claims: Claim[] = []
  const address = heard.find(({ kind }) => kind !== 'proxy')
  if (address && !address.ours && address.atUs - dhcp.startUs > pauseUsMin) {
    claims.push({
      fromUs: dhcp.startUs,
      toUs: address.atUs,
      rank: ranks.offers,
      owner: ownerOf('dhcp_server', address.server),
      source: 'observed',
      evidence: `Its offer of an address, the first one, came at ${at(address.atUs)}.`,
    })
  }
  if (endUs !== null && endUs - last.atUs > pauseUsMin) {
    claims.push({
      fromUs: last.atUs,
      toUs: endUs,
      rank: ranks.offers,
      owner: ownerOf('firmware_offers'),
      source: 'observed',
      evidence: `The last of ${heard.length} offers came at ${at(last.atUs)}; the exchange ended at ${at(endUs)}.`,
    })
  }
  return claims
}

function claimOfGap(boot: TracedBoot, phase: TracedPhase, { atUs, durationUs }: TracedPhase['gaps'][number]): Claim {
  return {
    fromUs: atUs,
    toUs: atUs + durationUs,
    rank: ranks.gap,
    owner: ownerOf(ownerOfGap(boot, phase, atUs)),
    source: phase.source,
    evidence: `No packet from ${at(atUs)} to ${at(atUs + durationUs)}${countsOf(phase)}.`,
  }
}

function ownerOfGap(boot: TracedBoot, { name, startUs }: TracedPhase, atUs: number): OwnerName {
  switch (name) {
    case 'firmware':
      return 'power_on'
    case 'dhcp':
      return 'firmware_offers'
    case 'nbp':
      return 'nbp_pause'
    case 'loader':
      if (atUs <= startUs) return 'loader_start'
      if (isInDownload(boot, atUs) && boot.menuEntry === null) return 'loader_stall'
      return boot.menuEntry === null ? 'loader_pause' : 'boot_menu'
    case 'stage1':
      return 'stage1_pause'
    case 'breather':
      return 'kernel_unreported'
    case 'stage2':
    case 'ready':
      return 'stream_pause'
  }
}
