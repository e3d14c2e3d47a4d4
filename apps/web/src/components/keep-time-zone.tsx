'use client'

import { useEffect } from 'react'
import { keepTimeZone } from '../lib/time-zone'

/** Renders nothing: tells the server, for the next page, in which zone the browser shows instants. */
export function KeepTimeZone() {
  useEffect(keepTimeZone, [])
  return null
}
