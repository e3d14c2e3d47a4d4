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
  waiting: 'Waiting',
  ordered: 'Updating',
  running: 'Updated',
  failed: 'Rolled back',
  silent: 'Silent',
  late: 'Late',
  left: 'Left out',
}

const leftCauses: Record<string, string> = {
  revoked: 'It was revoked.',
  deleted: 'Its site was deleted or moved to another farm.',
  other_order: 'Someone ordered another release for it.',
  cancelled: 'The rollout was cancelled before it ran the release.',
  failed: 'It returned to its former release, and the rollout was resumed without it.',
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
      if (cause === 'returned') return 'It ran the release, and now runs another program.'
      return cause === null ? 'It runs its former release.' : sentence(causeText(cause))
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

/** What an edge did for which a rollout pauses by itself, and what to do about it. */
export const pauseTexts = {
  failed: {
    what: 'returned to its former release',
    remedy: 'Its row below gives the reason. Resume to order the release again, or to continue without the edge.',
  },
  silent: {
    what: 'has not sent a heartbeat for more than 3 minutes',
    remedy: 'Check the server and its network. Resume once the edge is online, or continue without it.',
  },
  late: {
    what: 'has not started to run the release within 30 minutes',
    remedy: 'Its row below says how far it is. Resume to order the release again, or to continue without the edge.',
  },
} as const

const shown = ['running', 'ordered', 'failed', 'silent', 'late', 'waiting', 'left'] as const
const countWords: Record<EdgeState, string> = {
  running: 'updated',
  ordered: 'updating',
  failed: 'rolled back',
  silent: 'silent',
  late: 'late',
  waiting: 'waiting',
  left: 'left out',
}

/** `2 edges: 1 updated, 1 updating`. */
export function countsText(counts: RolloutSummary['counts']): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  if (total === 0) return 'no edges'
  const parts = shown
    .filter((state) => (counts[state] ?? 0) > 0)
    .map((state) => `${counts[state]} ${countWords[state]}`)
  return `${countOf(total, 'edge')}: ${parts.join(', ')}`
}
