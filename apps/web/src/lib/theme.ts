import { z } from 'zod'

/**
 * The theme is a cookie so that the server writes it into the first byte of the page: no flash, no inline script.
 * Without the cookie `color-scheme: light dark` follows the system.
 */
export const themeCookie = 'bootfarm-theme'

export const theme = z.enum(['light', 'dark', 'system'])
export type Theme = z.infer<typeof theme>

const cookieAgeSeconds = 365 * 24 * 3600

export function themeFrom(value: string | undefined): Theme {
  return theme.catch('system').parse(value)
}

/** Shows the theme at once and remembers it for the next page load. */
export function applyTheme(next: Theme): void {
  if (next === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing in Firefox before 140
  document.cookie = `${themeCookie}=${next}; path=/; max-age=${cookieAgeSeconds}; samesite=lax`
}
