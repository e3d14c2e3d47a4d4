import type { Listed, RouterOutputs } from '../../lib/trpc'

export type BootDetail = RouterOutputs['boot']['get']
export type BootPhaseView = BootDetail['phases'][number]
export type BootSummary = Listed<'boot'>
