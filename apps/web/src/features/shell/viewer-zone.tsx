'use client'

import { useSyncExternalStore } from 'react'

const never = () => () => {}
const browserZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone

/** The zone that all times are shown in; only the browser knows it. */
export function ViewerZone() {
  const zone = useSyncExternalStore(never, browserZone, () => '')
  return (
    <span className="truncate text-2xs text-ink-faint" title="Times are shown in this time zone.">
      {zone.replaceAll('_', ' ')}
    </span>
  )
}
