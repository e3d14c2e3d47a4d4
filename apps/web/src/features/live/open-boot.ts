const bootPagePath = /^\/boots\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i

/** Returns the boot whose page is open; null on every other page. */
export function openBootId(pathname: string): string | null {
  return bootPagePath.exec(pathname)?.[1] ?? null
}
