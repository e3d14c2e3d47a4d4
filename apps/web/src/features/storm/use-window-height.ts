'use client'

import { useSyncExternalStore } from 'react'

const heightBeforeMeasure = 800

function subscribe(onChange: () => void): () => void {
  window.addEventListener('resize', onChange)
  return () => window.removeEventListener('resize', onChange)
}

/** The height of the window in CSS pixels. */
export function useWindowHeight(): number {
  return useSyncExternalStore(
    subscribe,
    () => window.innerHeight,
    () => heightBeforeMeasure,
  )
}
