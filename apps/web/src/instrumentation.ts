/** Next calls it once, before the server takes requests. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return
  // A setting that cannot be read ends the start.
  const { firstDataLimitMs } = await import('./env')
  firstDataLimitMs()
  const { nameCallers } = await import('./lib/name-callers')
  nameCallers()
}
