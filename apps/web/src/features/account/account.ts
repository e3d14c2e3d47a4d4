import type { RouterOutputs } from '../../lib/trpc'

/** The signed-in person's own account, as the API gives it. */
export type Account = RouterOutputs['session']['account']
