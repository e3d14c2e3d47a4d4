import { bootCauses, bootCauseText } from '@bootfarm/proto/boot-phases'
import type { ObjectiveFigures } from './schema.ts'
import type { BurnWindow } from './watch/burn-rate.ts'

/** Alerts in people's words. No text of a device is part of them. */

interface TitledAlert {
  siteName: string
  collectionName: string | null
  cause: string | null
  bootCount: number
  objective: ObjectiveFigures | null
}

const windowText: Record<BurnWindow, string> = {
  '5m': 'last 5 minutes',
  '30m': 'last 30 minutes',
  '1h': 'last hour',
  '6h': 'last 6 hours',
}

/** One sentence: what happens, and where. */
export function titleOf({ siteName, collectionName, cause, bootCount, objective }: TitledAlert): string {
  const place = collectionName === null ? `site ${siteName}` : `collection ${collectionName} of site ${siteName}`
  if (objective) {
    const { boots, missed, window, percent, seconds } = objective
    const share = Math.floor(((boots - missed) / Math.max(1, boots)) * 100)
    return `Only ${share} % of the boots of ${place} were ready within ${seconds} s in the ${windowText[window]}. The objective is ${percent} %.`
  }
  return `${bootCount} ${bootCount === 1 ? 'boot' : 'boots'} of ${place}: ${causeSentence(cause)}`
}

export function causeSentence(cause: string | null): string {
  const known = bootCauses.find((name) => name === cause)
  return known ? bootCauseText(known).sentence : 'The devices fell silent before they were ready.'
}

interface EvidencedAlert {
  siteId: string
  collectionId: string | null
  cause: string | null
  firstAt: Date
  lastAt: Date
  closedAt: Date | null
}

/** The page of all boots that failed of the cause since then. */
export function causePath(cause: string, since: Date): string {
  const filter = cause === 'silent' ? { outcome: 'silent' } : { cause }
  return `/boots?${new URLSearchParams({ ...filter, since: since.toISOString() })}`
}

/** The page of the boots that the alert is about, as a path of the dashboard: its filters are in the URL. */
export function bootsPath({ siteId, collectionId, cause, firstAt, lastAt, closedAt }: EvidencedAlert): string {
  const filter = new URLSearchParams(collectionId === null ? { site: siteId } : { collection: collectionId })
  if (cause === 'silent') filter.set('outcome', 'silent')
  else if (cause !== null) filter.set('cause', cause)
  // The slowest boots explain a missed objective.
  else filter.set('sort', '-durationUs')
  filter.set('since', firstAt.toISOString())
  // The filter is exclusive.
  if (closedAt !== null) filter.set('until', new Date(lastAt.getTime() + 1).toISOString())
  return `/boots?${filter}`
}
