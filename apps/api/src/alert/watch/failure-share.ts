/** When boots of a site or a collection fail of one cause so often that it is news. Pure. */

export interface FailureCounts {
  /** Boots of the last minutes that failed of the cause. */
  boots: number
  /** Devices of these boots: one that fails in a loop is no problem of the site. */
  devices: number
  /** All boots of the place that started in these minutes. */
  placeBoots: number
  /** The share that usually fails of it, 0 to 1. */
  usualShare: number
}

export const failureMinutes = 15
export const devicesMin = 5
/** So many times the usual share. */
const timesUsual = 3
/** An open alert stays while the share is above this part of the limit: one boot does not close and reopen it. */
const stayPart = 0.5
/** Nothing has failed of the cause for so long. */
export const quietMs = 30 * 60_000

/** A site without history: one failure in 50 boots is usual, so that the first ones are compared with something. */
const priorFailures = 1
const priorBoots = 50

export function usualShareOf({ failed, boots }: { failed: number; boots: number }): number {
  return (failed + priorFailures) / (Math.max(boots, failed) + priorBoots)
}

/** Above the usual share in any case, and in reach: if most boots fail usually, nearly all of them are news. */
export function shareLimitOf(usualShare: number): number {
  return Math.min(timesUsual * usualShare, (1 + usualShare) / 2)
}

function shareOf({ boots, placeBoots }: FailureCounts): number {
  return boots === 0 ? 0 : boots / Math.max(boots, placeBoots)
}

export function opens(counts: FailureCounts): boolean {
  return counts.devices >= devicesMin && shareOf(counts) >= shareLimitOf(counts.usualShare)
}

/** @param silentMs since the start of the last boot that failed of the cause */
export function stays(counts: FailureCounts, silentMs: number): boolean {
  if (silentMs > quietMs) return false
  // Too few boots to tell whether it is over.
  if (counts.placeBoots < devicesMin) return true
  return shareOf(counts) >= shareLimitOf(counts.usualShare) * stayPart
}
