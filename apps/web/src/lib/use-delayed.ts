'use client'

import { useEffect, useState } from 'react'

const delayMs = 250

/** The text, a moment after its last change. */
export function useDelayed(text: string): string {
  const [delayed, setDelayed] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(text), delayMs)
    return () => clearTimeout(timer)
  }, [text])
  return delayed
}
