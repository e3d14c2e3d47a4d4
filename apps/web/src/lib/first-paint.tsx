'use client'

import { createContext, useContext, useSyncExternalStore } from 'react'

/** The clock and the zone that the server made the page with: the browser has to begin with the same text. */
export interface FirstPaint {
  /** ISO 8601. */
  now: string
  timeZone: string
}

const FirstPaintContext = createContext<FirstPaint | null>(null)

export const FirstPaintProvider = FirstPaintContext.Provider

const never = () => () => {}

/** True on the server and while the browser takes over what the server has made; false ever after. */
export function useIsFirstPaint(): boolean {
  return useSyncExternalStore(
    never,
    () => false,
    () => true,
  )
}

/** The server's clock and zone during the first paint; null afterwards, when the browser's own count. */
export function useFirstPaint(): FirstPaint | null {
  const paint = useContext(FirstPaintContext)
  return useIsFirstPaint() ? paint : null
}
