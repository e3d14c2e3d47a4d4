'use client'

import { useEffect, useState } from 'react'
import { useFirstPaint } from './first-paint'

/** The clock as state, read every `intervalMs` while the component is shown. */
export function useNow(intervalMs: number): Date {
  const paint = useFirstPaint()
  const [now, setNow] = useState(() => new Date())
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), intervalMs)
    return () => clearInterval(timer)
  }, [intervalMs])
  return paint ? new Date(paint.now) : now
}
