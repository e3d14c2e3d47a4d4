'use client'

import { useEffect } from 'react'

/** Says on the document that the page's program runs: until then nothing listens to a click or a choice. */
export function MarkHydrated() {
  useEffect(() => {
    document.documentElement.dataset.hydrated = 'true'
  }, [])
  return null
}
