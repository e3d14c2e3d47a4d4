'use client'

import { formatDuration } from '../../lib/format-quantity'
import { useNow } from '../../lib/use-now'
import { elapsedOf } from './waterfall/waterfall-layout'

interface TimedBoot {
  startedAt: string
  totalUs: number
  outcome: string | null
}

const refreshMs = 250

/** The duration of the boot; counting while it lasts. */
export function BootDuration({ boot }: { boot: TimedBoot }) {
  return boot.outcome === null ? <Counting boot={boot} /> : formatDuration(boot.totalUs)
}

function Counting({ boot }: { boot: TimedBoot }) {
  return <span className="text-live">{formatDuration(elapsedOf(boot, useNow(refreshMs)))}</span>
}
