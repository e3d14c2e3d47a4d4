import type { DehydratedState } from '@tanstack/react-query'

/** The same data, read at this time of the browser's clock, which decides when to read it again. */
export function inBrowserTime(state: DehydratedState, nowMs: number): DehydratedState {
  return {
    ...state,
    queries: state.queries.map((query) => ({ ...query, state: { ...query.state, dataUpdatedAt: nowMs } })),
  }
}
