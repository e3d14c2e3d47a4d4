/**
 * When an objective is missed by so much that somebody should look: multi-window, multi-burn-rate alerts of "The Site
 * Reliability Workbook", chapter 5. Pure.
 */

export interface BurnObjective {
  /** The share of boots, in tenths of a percent. */
  permille: number
  /** The time over which the share counts. */
  days: number
}

/** Boots that started within a window, and those that missed the objective. */
export interface WindowCounts {
  boots: number
  missed: number
}

export const burnWindows = ['5m', '30m', '1h', '6h'] as const
export type BurnWindow = (typeof burnWindows)[number]
export const windowMinutes: Record<BurnWindow, number> = { '5m': 5, '30m': 30, '1h': 60, '6h': 360 }
export type BurnCounts = Record<BurnWindow, WindowCounts>

interface BurnRule {
  /** Says that it matters. */
  long: BurnWindow
  /** Says that it still happens. */
  short: BurnWindow
  /** The part of the budget that the long window may use: of 30 days, 14.4 and 6 times the allowed rate. */
  budgetUsed: number
}

export const burnRules: readonly BurnRule[] = [
  { long: '1h', short: '5m', budgetUsed: 0.02 },
  { long: '6h', short: '30m', budgetUsed: 0.05 },
]

/** Fewer boots are no rate. */
export const longBootsMin = 10
export const shortBootsMin = 3
/** One slow device is none, however strict the objective is. */
export const missedMin = 3
/** Loose objectives cannot be missed 14.4 times: a larger share of boots that miss them is always too much. */
const missedShareMax = 0.75
/** A budget that lasts for its time needs nobody, however short that is. */
const burnLimitMin = 1

/** How many times faster than allowed boots use the budget; 0 without boots. */
export function burnRateOf({ boots, missed }: WindowCounts, { permille }: Pick<BurnObjective, 'permille'>): number {
  return boots === 0 ? 0 : missed / boots / (1 - permille / 1000)
}

export function burnLimitOf({ long, budgetUsed }: BurnRule, { permille, days }: BurnObjective): number {
  const byBudget = (budgetUsed * days * 24 * 60) / windowMinutes[long]
  return Math.min(Math.max(byBudget, burnLimitMin), missedShareMax / (1 - permille / 1000))
}

export interface Burn {
  window: BurnWindow
  rate: number
  limit: number
}

/**
 * Returns the rule by which an alert is to be open, the faster one first; null for none. It opens while both windows
 * are over the limit, and stays until the long one is not, or boots of the short one meet the objective again: diskless
 * machines boot in waves, and no boots are no recovery.
 */
export function judgeBurn(counts: BurnCounts, objective: BurnObjective, isOpen: boolean): Burn | null {
  for (const rule of burnRules) {
    const limit = burnLimitOf(rule, objective)
    const [long, short] = [counts[rule.long], counts[rule.short]]
    const rate = burnRateOf(long, objective)
    if (long.boots < longBootsMin || long.missed < missedMin || rate < limit) continue
    const isShortKnown = short.boots >= shortBootsMin
    const isShortOver = burnRateOf(short, objective) >= limit
    if (isOpen ? isShortOver || !isShortKnown : isShortOver && isShortKnown) return { window: rule.long, rate, limit }
  }
  return null
}
