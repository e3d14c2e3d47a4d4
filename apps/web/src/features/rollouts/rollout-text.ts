import { countOf } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'
import { causeText, progressText } from '../edges/release-text'

export type RolloutSummary = RouterOutputs['rollout']['list']['items'][number]
export type RolloutDetail = RouterOutputs['rollout']['get']
export type RolloutEdge = RouterOutputs['rollout']['edges']['items'][number]
type EdgeState = RolloutEdge['state']

export function waveName(wave: number): string {
  return wave === 0 ? 'Canary' : `Wave ${wave + 1}`
}

export const edgeStateText: Record<EdgeState, string> = {
  waiting: 'Waits',
  ordered: 'Updating',
  running: 'Runs the release',
  failed: 'Returned',
  silent: 'Silent',
  late: 'Late',
  left: 'Left out',
}

const leftCauses: Record<string, string> = {
  revoked: 'It was revoked.',
  deleted: 'Its site was deleted or moved to another farm.',
  other_order: 'Someone ordered another release for it.',
  cancelled: 'The rollout was cancelled before it ran the release.',
  failed: 'It returned to the release before, and the rollout was resumed without it.',
  silent: 'It was silent, and the rollout was resumed without it. It updates when it comes back.',
  late: 'It was late, and the rollout was resumed without it. It may still update.',
}

/** Why an edge is in its state, in a sentence; null where the state says it all. */
export function edgeWhyText({ state, cause, progress }: RolloutEdge): string | null {
  switch (state) {
    case 'waiting':
      return null
    case 'running':
      return null
    case 'ordered':
      return sentence(cause === null ? progressText(progress ?? 'ordered') : causeText(cause))
    case 'failed':
      if (cause === 'returned') return 'It ran the release, and runs another program now.'
      return cause === null ? 'It runs the release before.' : sentence(causeText(cause))
    case 'silent':
      return 'No heartbeat for more than 3 minutes.'
    case 'late':
      return cause === null
        ? `More than 30 minutes have passed: ${progressText(progress ?? 'ordered')}.`
        : sentence(causeText(cause))
    case 'left':
      return leftCauses[cause ?? ''] ?? null
  }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

const pauseReasons = {
  failed: 'returned to the release before',
  silent: 'has not sent a heartbeat for more than 3 minutes',
  late: 'has not started to run the release within 30 minutes',
} as const

/** Why a rollout is paused. */
export function pauseText({ reason, edge }: NonNullable<RolloutSummary['pause']>): string {
  if (reason === 'by_hand') return 'Someone paused this rollout.'
  return `This rollout paused by itself: ${edge?.name ?? 'an edge that no longer exists'} ${pauseReasons[reason]}.`
}

const shown = ['running', 'ordered', 'failed', 'silent', 'late', 'waiting', 'left'] as const
const countWords: Record<EdgeState, string> = {
  running: 'run it',
  ordered: 'updating',
  failed: 'returned',
  silent: 'silent',
  late: 'late',
  waiting: 'wait',
  left: 'left out',
}

/** `2 edges: 1 run it, 1 updating`. */
export function countsText(counts: RolloutSummary['counts']): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  if (total === 0) return 'no edges'
  const parts = shown
    .filter((state) => (counts[state] ?? 0) > 0)
    .map((state) => `${counts[state]} ${countWords[state]}`)
  return `${countOf(total, 'edge')}: ${parts.join(', ')}`
}
