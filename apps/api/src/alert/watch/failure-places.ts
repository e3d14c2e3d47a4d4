import type { FailureGroup } from './count-failures.ts'
import { opens, stays } from './failure-share.ts'

/** Which places have an alert: the collections whose boots fail, or the site where they are many. Pure. */

/** Failed boots of one cause at one site, in one collection or in all. */
export interface PlaceFailures extends Omit<FailureGroup, 'siteBoots'> {
  /** The share that usually fails of it, 0 to 1. */
  usualShare: number
  /** An alert is open. */
  isOpen: boolean
}

/** More collections of a site that begin to fail of one cause are one alert of the site. */
export const collectionsMax = 2

/** The boots of one cause at one site. */
export interface SiteFailures {
  /** All of them. */
  site: PlaceFailures
  /** By collection; those of devices that are in none have null. */
  parts: PlaceFailures[]
}

/**
 * Returns the places that are to have an alert. A site has one for what is left without the collections that have
 * their own; its figures are of all its boots, as are those that its alert leads to.
 */
export function choosePlaces({ site, parts }: SiteFailures, now: Date): PlaceFailures[] {
  const isHeld = (place: PlaceFailures) =>
    place.isOpen ? stays(place, now.getTime() - place.lastAt.getTime()) : opens(place)
  const held = parts.filter((part) => part.collectionId !== null && isHeld(part))
  const open = held.filter(({ isOpen }) => isOpen)
  const isSiteHeld = (without: PlaceFailures[]) => isHeld(restOf(site, { parts, without }))
  // Collections that begin to fail while the site does are part of it.
  if ((site.isOpen || held.length - open.length > collectionsMax) && isSiteHeld(open)) return [site, ...open]
  return [...(isSiteHeld(held) ? [site] : []), ...held]
}

function restOf(
  site: PlaceFailures,
  { parts, without }: { parts: PlaceFailures[]; without: PlaceFailures[] },
): PlaceFailures {
  const left = (of: (place: PlaceFailures) => number) =>
    Math.max(
      0,
      without.reduce((rest, place) => rest - of(place), of(site)),
    )
  const others = parts.filter((part) => !without.includes(part))
  return {
    ...site,
    boots: left(({ boots }) => boots),
    devices: left(({ devices }) => devices),
    placeBoots: left(({ placeBoots }) => placeBoots),
    lastAt: new Date(Math.max(0, ...others.map(({ lastAt }) => lastAt.getTime()))),
  }
}
