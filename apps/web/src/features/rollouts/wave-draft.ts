import { waveName } from './rollout-text'

/** The choice for a site that the rollout leaves alone. */
export const notIncluded = -1
/** As the API takes them. */
const wavesMax = 20

interface Site {
  id: string
  edgeCount: number
}

/** A site is canary, in a later wave, or not included. The first one with edges is the canary until one is chosen. */
export function waveOf(sites: Site[], chosen: Record<string, number>, siteId: string): number {
  const known = chosen[siteId]
  if (known !== undefined) return known
  if (Object.values(chosen).includes(0)) return 1
  const canary = sites.find(({ id, edgeCount }) => edgeCount > 0 && chosen[id] === undefined)
  return canary?.id === siteId ? 0 : 1
}

/** The ids of the sites of each wave, up to the last one that has any. */
export function wavesOf(sites: Site[], chosen: Record<string, number>): string[][] {
  const waveOfSite = new Map(sites.map(({ id }) => [id, waveOf(sites, chosen, id)]))
  const count = Math.max(0, ...waveOfSite.values()) + 1
  return Array.from({ length: count }, (_, wave) =>
    sites.filter(({ id }) => waveOfSite.get(id) === wave).map(({ id }) => id),
  )
}

/** The waves that a site can be in: those that there are, and one more. */
export function waveOptions(waveCount: number): { value: number; label: string }[] {
  const count = Math.min(waveCount + 1, wavesMax)
  return Array.from({ length: count }, (_, wave) => ({ value: wave, label: waveName(wave) }))
}
