'use client'

import { type BootPath, type PathSegment, tracePath } from '@bootfarm/proto/boot-path'
import { useState } from 'react'
import { Panel } from '../../../components/page'
import { Tag } from '../../../components/tag'
import { formatDuration, formatOffset } from '../../../lib/format-quantity'
import { useNow } from '../../../lib/use-now'
import { HelpLink } from '../../help/help-link'
import { helpTopics } from '../../help/help-links'
import type { BootDetail } from '../boot-types'
import { elapsedOf } from '../waterfall/waterfall-layout'
import { BootDownloads } from './boot-downloads'
import { bootSentence, formatShare } from './boot-sentence'
import { OwnerTable } from './owner-table'
import { PathBar } from './path-bar'
import type { Baseline } from './usual'

/** How often a boot in progress is drawn: often enough to read, seldom enough to press. */
const growMs = 1000

interface CriticalPathProps {
  boot: BootDetail
  baseline: Baseline | null
}

/** Where a boot's time went: a sentence, its critical path, and what each owner has of it. */
export function CriticalPath({ boot, baseline }: CriticalPathProps) {
  if (boot.phases.length === 0) return null
  if (boot.outcome === null) return <GrowingPath boot={boot} baseline={baseline} />
  return <TracedPath boot={boot} baseline={baseline} path={tracePath(boot)} />
}

function GrowingPath({ boot, baseline }: CriticalPathProps) {
  const now = useNow(growMs)
  return <TracedPath boot={boot} baseline={baseline} path={tracePath(boot, elapsedOf(boot, now))} />
}

function TracedPath({ boot, baseline, path }: CriticalPathProps & { path: BootPath }) {
  const [shown, setShown] = useState<number | null>(null)
  const told = bootSentence(boot, path, baseline)
  if (!told) return null
  const longest = path.segments.reduce(
    (best, segment, index) => (lengthOf(segment) > lengthOf(path.segments[best]) ? index : best),
    0,
  )
  const index = Math.min(shown ?? longest, path.segments.length - 1)
  const segment = path.segments[index]
  return (
    <Panel title="Where the time went" aside={<Certainty path={path} />} flush>
      <div className="px-4 pt-3 pb-4">
        <p className="font-medium text-ink text-lg">{told.sentence}</p>
        {told.help && <p className="mt-0.5 text-ink-soft">{told.help}</p>}
        <p className="mt-1">
          <HelpLink to={helpTopics.criticalPath}>How owners are found</HelpLink>
        </p>
        <PathBar path={path} shown={index} onShow={setShown} />
        {segment && <Evidence segment={segment} />}
        {path.beforeUs !== null && (
          <p className="mt-2 text-ink-faint text-xs">
            Before its first packet, the firmware ran for {formatDuration(path.beforeUs)}, according to its own table
            (ACPI FPDT). This time is not part of the sum.
          </p>
        )}
      </div>
      <OwnerTable path={path} />
      <BootDownloads bootId={boot.id} />
    </Panel>
  )
}

function lengthOf(segment: PathSegment | undefined): number {
  return segment ? segment.toUs - segment.fromUs : 0
}

/** How much of the path nobody saw. */
function Certainty({ path: { inferredUs, unattributedUs, totalUs } }: { path: BootPath }) {
  const share = (us: number) => formatShare(Math.round((us / Math.max(1, totalUs)) * 1000))
  return (
    <>
      {unattributedUs > 0 && <span>{share(unattributedUs)} unattributed</span>}
      <span title="Time that neither the edge saw nor the device reported: it follows from what came before and after.">
        {share(inferredUs)} inferred
      </span>
    </>
  )
}

const sources = {
  observed: 'observed by the edge',
  reported: 'reported by the device',
  inferred: 'inferred',
} as const

/** Of the part that the pointer or the focus is on; at first of the longest. */
function Evidence({ segment }: { segment: PathSegment }) {
  const { owner, fromUs, toUs, source, evidence } = segment
  return (
    <div className="mt-3 min-h-15 text-sm">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="break-all font-medium text-ink">{owner.title}</span>
        <span>{formatDuration(toUs - fromUs)}</span>
        <span className="text-ink-faint text-xs">
          {formatOffset(fromUs)} to {formatOffset(toUs)}
        </span>
        <Tag>{sources[source]}</Tag>
      </p>
      <p className="mt-0.5 break-words text-ink-soft">{evidence}</p>
    </div>
  )
}
