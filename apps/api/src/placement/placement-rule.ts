/** Which edges of a site hold a vDisk's versions, and how they get them. */
export interface PlacementRule {
  /** Number of edges; null: all. */
  edges: number | null
  /** Of each edge; null: no limit. */
  rateBytesPerSecond: number | null
  /** `HH:MM` in the site's zone; may span midnight. Null: fetches start at any time. */
  window: TimeWindow | null
}

export interface TimeWindow {
  from: string
  to: string
}

/** Of vDisks without a placement, in farms without one. */
export const defaultRule: PlacementRule = { edges: null, rateBytesPerSecond: null, window: null }
export const noEdges: PlacementRule = { edges: 0, rateBytesPerSecond: null, window: null }

/** The rules of a placement: of sites, and of all others of the farm. */
export interface PlacementRules {
  sites: ReadonlyMap<string, PlacementRule>
  /** Null: other sites hold nothing. */
  others: PlacementRule | null
}

export function ruleOf({ sites, others }: PlacementRules, siteId: string): PlacementRule {
  return sites.get(siteId) ?? others ?? noEdges
}

/** Whether a fetch may start now at a site in this zone. */
export function isOpen(window: TimeWindow | null, timeZone: string, now: Date): boolean {
  if (!window) return true
  const time = timeIn(timeZone, now)
  const { from, to } = window
  return from <= to ? from <= time && time < to : from <= time || time < to
}

/** `HH:MM`, as the clocks of the zone show it. */
function timeIn(timeZone: string, at: Date): string {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return format.format(at)
}
