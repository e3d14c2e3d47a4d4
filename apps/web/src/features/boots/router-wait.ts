import type { BootDetail, BootPhaseView } from './boot-types'

/** iPXE solicits a router several times: 13 to 17 s in emulated machines. Other programs pause less, or far longer. */
const shortestUs = 8_000_000
const longestUs = 30_000_000

type PhaseTimes = Pick<BootPhaseView, 'name' | 'startUs' | 'durationUs'>

/** How long a loader waited for an IPv6 router, and whether its edge heard that it did. */
export interface RouterWait {
  durationUs: number
  isHeard: boolean
}

/** Returns the wait that the edge has reported, or the one that the phases of an older edge imply; null: none. */
export function routerWaitOf(boot: Pick<BootDetail, 'routerWait'> & { phases: PhaseTimes[] }): RouterWait | null {
  const { routerWait, phases } = boot
  if (routerWait) return { durationUs: routerWait.durationUs, isHeard: routerWait.solicitations > 0 }
  const durationUs = pauseUs(phases)
  return durationUs === null ? null : { durationUs, isHeard: false }
}

/**
 * Returns how long a boot stood still between its last DHCP answer or boot program and the download of its kernel, if
 * that is as long as iPXE waits for an IPv6 router; null: it is not. No phase has this time, since nothing is sent to
 * the edge.
 */
function pauseUs(phases: PhaseTimes[]): number | null {
  const loader = phases.find(({ name }) => name === 'loader')
  const before = phases.filter(({ name }) => name === 'dhcp' || name === 'nbp')
  if (!loader || before.length === 0 || before.some(({ durationUs }) => durationUs === null)) return null
  const waitedUs = loader.startUs - Math.max(...before.map(({ startUs, durationUs }) => startUs + (durationUs ?? 0)))
  return waitedUs >= shortestUs && waitedUs <= longestUs ? waitedUs : null
}
