/** The address of the sign-in page that returns to `from` afterwards. */
export function signInPath(from: string): string {
  return from === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(from)}`
}

/** After sign-in only a path of this dashboard is opened: never another host, also not as `//host` or `/\host`. */
export function pathAfterSignIn(next: string | null | undefined): string {
  if (!next || !/^\/(?![/\\])/.test(next)) return '/'
  // Browsers drop tabs and line ends out of URLs, so that `/\t/host` would be `//host`.
  const hasControlCharacter = [...next].some((character) => character < ' ')
  return hasControlCharacter ? '/' : next
}
