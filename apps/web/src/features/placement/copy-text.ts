import type { Tone } from '../../components/tag'
import { countOf, formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type Copies = RouterOutputs['placement']['copies']
export type Copy = Copies['copies'][number]
export type Placement = RouterOutputs['placement']['get']
type Rule = NonNullable<Placement['others']>

export const copyTones: Record<Copy['state'], Tone> = {
  holds: 'ready',
  damaged: 'failed',
  fetching: 'live',
  lacks: 'silent',
}

/** What was repaired of a copy, and what could not be; null: nothing was damaged. */
export function repairText({ repaired, notRepaired }: Copy): string | null {
  const parts = [
    repaired > 0 && `${countOf(repaired, 'block')} repaired`,
    notRepaired > 0 && `${countOf(notRepaired, 'repair')} failed`,
  ].filter((part) => part !== false)
  return parts.length === 0 ? null : parts.join(', ')
}

/** What a cell of the table says. */
export function copyText({
  state,
  progressBytes,
  totalBytes,
}: Pick<Copy, 'state' | 'progressBytes' | 'totalBytes'>): string {
  if (state !== 'fetching') return state
  if (totalBytes === 0) return 'fetching'
  return `fetching ${Math.min(100, Math.floor((progressBytes * 100) / totalBytes))} %`
}

/** About one edge, and one version or several. */
const reasons: Record<NonNullable<Copy['waitsFor']>, string> = {
  edge_offline: 'the edge is offline',
  edge_without_store: 'the edge has no store yet',
  edge_release: 'this or another edge needs a newer release',
  holder_offline: 'every edge that holds a copy is offline',
  no_holder: 'no edge holds a copy',
  no_object_store: 'only another site holds a copy, and the control plane has no object store',
  packing: 'another edge is making the difference for it',
  base: 'an earlier version is transferred first',
  space: 'its store has too little free space',
  window: 'transfers wait for their time of day',
  failed: 'the last try failed',
  cancelled: 'the transfer was cancelled',
  turn: 'other transfers come first',
}

/** What people can do about it, where something does not happen by itself. */
const remedies: Partial<Record<NonNullable<Copy['waitsFor']>, string>> = {
  edge_offline: 'Bring it back, revoke it, or leave it out of the placement.',
  edge_without_store: 'Create one on its server with bootfarm-edge vdisk init.',
  edge_release: 'Update the edges.',
  holder_offline: 'Bring one of them back.',
  no_holder: 'Import the image again.',
  no_object_store: 'Give the control plane one, or carry a difference to the edge.',
  space: 'Free space in the store, or leave the edge out of the placement.',
  failed: 'It is tried again. Save the placement to try now.',
  cancelled: 'It is tried again. Save the placement to try now.',
}

/** Why an edge lacks a version, and what to do about it; null: it does not, or fetches it. */
function lackText({ state, waitsFor, untrusted }: Pick<Copy, 'state' | 'waitsFor' | 'untrusted'>): string | null {
  if (state === 'damaged') return 'its copy is damaged. The edge’s page says more.'
  if (waitsFor === null) return null
  const detail = (waitsFor === 'failed' || waitsFor === 'space') && untrusted.message ? `: ${untrusted.message}` : ''
  const remedy = remedies[waitsFor]
  return `${reasons[waitsFor]}${detail}.${remedy ? ` ${remedy}` : ''}`
}

/** The same as sentences about one edge. */
export function whyText(copy: Parameters<typeof lackText>[0]): string | null {
  const text = lackText(copy)
  return text && text.charAt(0).toUpperCase() + text.slice(1)
}

/** Why edges lack versions that they are to hold: a text for each edge and reason, in the order of edges. */
export function missingTexts({ versions, edges, copies }: Pick<Copies, 'versions' | 'edges' | 'copies'>): string[] {
  const order = new Map(versions.map(({ id }, index) => [id, index]))
  const numberOf = new Map(versions.map(({ id, number }) => [id, number]))
  const byEdge = Map.groupBy(copies, ({ edgeId }) => edgeId)
  return edges.flatMap(({ id, name }) => {
    const own = (byEdge.get(id) ?? []).toSorted((a, b) => (order.get(a.versionId) ?? 0) - (order.get(b.versionId) ?? 0))
    return [...Map.groupBy(own, lackText)].flatMap(([text, same]) =>
      text === null
        ? []
        : [`${name}, ${versionsText(same.map(({ versionId }) => numberOf.get(versionId) ?? 0))}: ${text}`],
    )
  })
}

const numbersMax = 5

function versionsText(numbers: number[]): string {
  const more = numbers.length > numbersMax ? ' …' : ''
  return `${numbers.length === 1 ? 'version' : 'versions'} ${numbers.slice(0, numbersMax).join(', ')}${more}`
}

/** The rules in words, a sentence each. */
export function placementSentences({ others, sites }: Placement): string[] {
  const first = sites.length === 0 ? 'each site' : 'each other site'
  return [
    others && others.edges !== 0 ? `${ruleText(others)} of ${first}${limitsText(others)}.` : `No edge of ${first}.`,
    ...sites.map((rule) =>
      rule.edges === 0
        ? `${rule.siteName}: no edge.`
        : `${rule.siteName}: ${ruleText(rule).toLowerCase()}${limitsText(rule)}.`,
    ),
  ]
}

function ruleText({ edges }: Rule): string {
  return edges === null ? 'All edges' : countOf(edges, 'edge')
}

function limitsText({ rateBytesPerSecond, window }: Rule): string {
  const rate = rateBytesPerSecond === null ? '' : `, at most ${formatBytes(rateBytesPerSecond)} per second each`
  const time = window === null ? '' : `, from ${window.from} to ${window.to}`
  return rate + time
}

const mib = 1024 * 1024

/** The form of a rule: what people type. */
export interface RuleForm {
  edges: string
  rateMib: string
  from: string
  to: string
}

export function ruleFormOf(rule: Rule | null): RuleForm {
  return {
    edges: rule === null ? '0' : rule.edges === null ? '' : String(rule.edges),
    rateMib: rule?.rateBytesPerSecond == null ? '' : String(rule.rateBytesPerSecond / mib),
    from: rule?.window?.from ?? '',
    to: rule?.window?.to ?? '',
  }
}

/** Returns the rule of a form, or what is wrong with it. */
export function readRule({ edges, rateMib, from, to }: RuleForm): { rule: Rule } | { problem: string } {
  if (!/^\d{0,2}$/.test(edges.trim()) || Number(edges) > 16)
    return { problem: 'Enter 0 to 16 edges, or leave the number empty for all.' }
  const rate = Number(rateMib)
  if (rateMib.trim() !== '' && !(rate * mib >= 1024))
    return { problem: 'Enter the limit in MiB per second, for example 10, or leave it empty.' }
  if ((from === '') !== (to === '')) return { problem: 'Enter both times, or neither.' }
  if (from !== '' && from === to)
    return { problem: 'Transfers cannot start and end at the same time of day. Leave both empty for the whole day.' }
  return {
    rule: {
      edges: edges.trim() === '' ? null : Number(edges),
      rateBytesPerSecond: rateMib.trim() === '' ? null : Math.round(rate * mib),
      window: from === '' ? null : { from, to },
    },
  }
}
