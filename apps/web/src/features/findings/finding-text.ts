import { formatDuration } from '../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../lib/trpc'

export type Finding = RouterOutputs['finding']['list']['items'][number]
export type FindingDetail = RouterOutputs['finding']['get']
export type Evidence = FindingDetail['evidence']

export const stateTexts: Record<Finding['state'], string> = {
  open: 'Open',
  acknowledged: 'Acknowledged',
  muted: 'Muted',
  closed: 'Closed',
}

export const factorTexts: Record<Finding['factor'], string> = {
  version: 'Version',
  edge_release: 'Edge release',
  setting: 'Setting',
  segment: 'Segment',
}

export const partTexts: Record<Evidence['phases'][number]['parts'][number]['name'], string> = {
  storage: 'Storage at the edge',
  send: 'Sending by the edge',
  network: 'Network',
  turnaround: 'The device itself',
}

/** `+1.8 s`, or `−0.2 s`. */
export function growthText({ beforeUs, afterUs }: { beforeUs: number; afterUs: number }): string {
  const grown = afterUs - beforeUs
  return `${grown < 0 ? '−' : '+'}${formatDuration(Math.abs(grown))}`
}

/** How sure the finding's class is of smaller shifts; null if nobody knows. */
export function smallestText(smallestShift: number | null): string | null {
  if (smallestShift === null) return null
  const percent = Math.ceil((smallestShift - 1) * 100)
  return `In this class, boots that become ${percent} % slower are found within 50 boots, in 95 of 100 cases.`
}

/** The boots with the change, as a path to the list of boots. */
export function bootsHref(finding: Finding, side: 'before' | 'since', evidence: Evidence): string {
  const query = new URLSearchParams({ site: finding.site.id, vdisk: finding.vdiskId })
  if (side === 'since') {
    query.set('since', finding.since)
    if (finding.factor === 'version') query.set('version', finding.value)
    if (finding.closedAt) query.set('until', finding.closedAt)
  } else {
    const first = evidence.before[0]
    if (first) query.set('since', first.startedAt)
    query.set('until', finding.since)
  }
  return `/boots?${query}`
}
