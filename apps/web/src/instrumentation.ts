/** Next calls it once, before the server takes requests. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return
  const { nameCallers } = await import('./lib/name-callers')
  nameCallers()
}
