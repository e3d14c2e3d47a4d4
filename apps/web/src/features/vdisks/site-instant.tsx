'use client'

import { useQuery } from '@tanstack/react-query'
import { formatInstantInFull, formatUtc } from '../../lib/format-time'
import { useTRPC } from '../../lib/trpc'

/** As many as the API gives at once. */
const sitesMax = 100
const zonesShownMax = 3

/** An instant in the viewer's zone, and beside it in those of the farm's sites. */
export function SiteInstant({ at, farmId }: { at: string; farmId: string }) {
  const sites = useQuery(useTRPC().site.list.queryOptions({ farmId, limit: sitesMax }))
  const instant = new Date(at)
  const here = formatInstantInFull(instant)
  const zones = [...new Set((sites.data?.items ?? []).map(({ timeZone }) => timeZone))]
  const there = [...new Set(zones.map((zone) => formatInstantInFull(instant, zone)))].filter((text) => text !== here)
  return (
    <span>
      <time dateTime={at} title={formatUtc(instant)}>
        {here}
      </time>
      {there.length > 0 && (
        <span className="text-ink-faint"> ({there.slice(0, zonesShownMax).join('; ')} site time)</span>
      )}
    </span>
  )
}
