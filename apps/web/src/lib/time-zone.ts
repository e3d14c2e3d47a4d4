/**
 * The viewer's time zone is a cookie, so that the server writes instants as the browser will: only the browser knows
 * the zone, and the first page of a new viewer is in UTC until it has told it.
 */
export const timeZoneCookie = 'bootfarm-time-zone'

/** The longest name of the time zone database has 32 characters. */
const nameLengthMax = 64
const cookieAgeSeconds = 365 * 24 * 3600

/** Returns the zone that a cookie names; UTC if it names none. */
export function timeZoneFrom(value: string | undefined): string {
  if (!value || value.length > nameLengthMax) return 'UTC'
  try {
    new Intl.DateTimeFormat('en', { timeZone: value })
    return value
  } catch {
    return 'UTC'
  }
}

export function browserTimeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** Remembers the browser's zone for the next page load. */
export function keepTimeZone(): void {
  const zone = encodeURIComponent(browserTimeZone())
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing in Firefox before 140
  document.cookie = `${timeZoneCookie}=${zone}; path=/; max-age=${cookieAgeSeconds}; samesite=lax`
}
