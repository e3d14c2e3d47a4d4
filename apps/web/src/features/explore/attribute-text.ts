import { type BootCause, bootCauseText } from '@bootfarm/proto/boot-phases'
import { countOf } from '../../lib/format-quantity.ts'
import type { RouterOutputs } from '../../lib/trpc'
import { architecture } from '../boots/architecture.ts'
import { type BootFilters, outcomeOptions } from '../boots/boot-filters.ts'
import { storageText } from '../boots/machine-text.ts'

export type AttributeName = RouterOutputs['explore']['differences']['values'][number]['attribute']

interface AttributeText {
  title: string
  /** The filter of the page and of the list of boots. */
  filter: keyof BootFilters
  /** Value in words; a value that is an id has a label, and this is for one that is gone. */
  text: (value: string) => string
}

const gone = () => '(removed)'

export const attributeTexts: Record<AttributeName, AttributeText> = {
  version: { title: 'Version', filter: 'version', text: gone },
  site: { title: 'Site', filter: 'site', text: gone },
  collection: { title: 'Collection', filter: 'collection', text: gone },
  edge: { title: 'Edge', filter: 'edge', text: gone },
  device: { title: 'Device', filter: 'device', text: gone },
  firmware: { title: 'Firmware', filter: 'firmware', text: (value) => architecture(Number(value)) ?? value },
  model: { title: 'Model', filter: 'model', text: (value) => value },
  processors: { title: 'Processors', filter: 'processors', text: (value) => countOf(Number(value), 'processor') },
  memory: { title: 'Memory', filter: 'memory', text: (value) => `${value}\u00a0GiB` },
  card: { title: 'Network card', filter: 'card', text: (value) => value },
  storage: { title: 'Storage of the edge', filter: 'storage', text: (value) => storageText(value) },
  release: { title: 'Edge release', filter: 'release', text: (value) => value },
  segment: { title: 'Segment', filter: 'segment', text: (value) => value },
  reads: {
    title: 'Reads',
    filter: 'reads',
    text: (value) => (value === 'cold' ? 'Cold: from disks of the edge' : 'Warm: from memory of the edge'),
  },
  outcome: {
    title: 'Outcome',
    filter: 'outcome',
    text: (value) => outcomeOptions.find((option) => option.value === value)?.label ?? value,
  },
  cause: {
    title: 'Cause of failure',
    filter: 'cause',
    text: (value) => bootCauseText(value as BootCause)?.sentence ?? value,
  },
  hour: { title: 'Hour (UTC)', filter: 'hour', text: (value) => `${value}:00 to ${value}:59` },
}

export const groupOptions = Object.entries(attributeTexts).map(([value, { title }]) => ({
  value,
  label: `By ${inWords(title)}`,
}))

function inWords(title: string): string {
  return title[0]?.toLowerCase() + title.slice(1)
}

const unknownTexts: Partial<Record<AttributeName, string>> = {
  outcome: 'Booting',
  cause: 'None',
  device: 'Not registered',
  collection: 'Not registered',
}

export function valueText(
  attribute: AttributeName,
  { value, label }: { value: string | null; label: string | null },
): string {
  if (value === null) return unknownTexts[attribute] ?? 'Not known'
  return label ?? attributeTexts[attribute].text(value)
}

/** The filter that has the boots of a value; null: none has those of an unknown one. */
export function filterOfValue(attribute: AttributeName, value: string | null): BootFilters | null {
  const { filter } = attributeTexts[attribute]
  if (attribute === 'outcome' && value === null) return { outcome: 'booting' }
  return value === null ? null : { [filter]: value }
}
