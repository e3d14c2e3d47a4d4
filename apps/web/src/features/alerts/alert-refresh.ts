/** A job evaluates alerts once a minute. */
export const alertRefreshMs = 30_000
