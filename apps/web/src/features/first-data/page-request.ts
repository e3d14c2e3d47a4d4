import { cookies, headers } from 'next/headers'
import { cache } from 'react'
import type { FirstPaint } from '../../lib/first-paint'
import { timeZoneCookie, timeZoneFrom } from '../../lib/time-zone'
import type { Asker } from './api-reader'
import { isDocumentRequest } from './document-request'

interface PageRequest {
  asker: Asker
  /** A whole page is loaded: what it shows first is not in the browser. */
  isDocument: boolean
  paint: FirstPaint
  /** Since when the browser waits, by `performance.now()`. */
  startedAtMs: number
}

/** The request that is being answered: the layout and its page get the same. */
export const pageRequest = cache(async (): Promise<PageRequest> => {
  const startedAtMs = performance.now()
  const now = new Date().toISOString()
  const [jar, list] = [await cookies(), await headers()]
  return {
    asker: { cookie: jar.toString(), forwardedFor: list.get('x-forwarded-for') ?? '' },
    isDocument: isDocumentRequest(list),
    paint: { now, timeZone: timeZoneFrom(jar.get(timeZoneCookie)?.value) },
    startedAtMs,
  }
})
