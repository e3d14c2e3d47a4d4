import type { RouterOutputs } from '../../lib/trpc'

export type BootDetail = RouterOutputs['boot']['get']
export type BootPhaseView = BootDetail['phases'][number]
export type BootSummary = RouterOutputs['boot']['list']['items'][number]
