import { randomBytes } from 'node:crypto'
import { kept, opened } from '../secrets/kept-secrets.ts'

const edgeKeySizeBytes = 32

interface SitePlace {
  organizationId: string
  siteId: string
}

/** A new key of a site's edges, as it is kept. */
export function newEdgeKey(place: SitePlace): Uint8Array<ArrayBuffer> {
  return kept(placeOf(place), randomBytes(edgeKeySizeBytes))
}

export function openedEdgeKey(place: SitePlace, edgeKey: Uint8Array): Uint8Array<ArrayBuffer> {
  return opened(placeOf(place), edgeKey)
}

function placeOf({ organizationId, siteId }: SitePlace) {
  return { kind: 'site', organizationId, id: siteId } as const
}
