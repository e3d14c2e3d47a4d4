'use client'

import type { BootPath, OwnerShare, PathSegment } from '@bootfarm/proto/boot-path'
import { useState } from 'react'
import { Button } from '../../../components/button'
import { type Column, Table } from '../../../components/table'
import { countOf, formatDuration } from '../../../lib/format-quantity'
import { formatShare } from './boot-sentence'
import { ownerColour } from './owner-colour'

/** What stays in view: the rest is small in nearly every boot. */
const ownersShown = 8

interface Row extends OwnerShare {
  segments: PathSegment[]
}

const columns: Column<Row>[] = [
  {
    title: 'Owner',
    cell: ({ owner }) => (
      <span className="inline-flex min-w-44 max-w-80 items-center sm:min-w-72 gap-2 whitespace-normal break-words font-medium">
        <span
          aria-hidden="true"
          className="size-2 shrink-0 rounded-full"
          style={{ background: ownerColour(owner.kind) }}
        />
        {owner.title}
      </span>
    ),
  },
  { title: 'Time', align: 'right', cell: ({ us }) => formatDuration(us) },
  { title: 'Share', meaning: 'Of the whole boot; all shares add up to 100 %', align: 'right', cell: ShareCell },
  { title: 'Source', cell: ({ segments }) => <span className="text-ink-soft">{sourcesOf(segments)}</span> },
  {
    title: 'Evidence',
    wide: true,
    cell: ({ segments }) => (
      <span className="block min-w-72 whitespace-normal break-words text-ink-soft text-xs">
        {segments.length > 1 && `${countOf(segments.length, 'part')}; the longest: `}
        {longestOf(segments)?.evidence}
      </span>
    ),
  },
]

function ShareCell({ share }: Row) {
  return formatShare(share)
}

/** What each owner has of the boot, the largest first. */
export function OwnerTable({ path }: { path: BootPath }) {
  const [all, setAll] = useState(false)
  const rows = path.owners.map((of) => ({
    ...of,
    segments: path.segments.filter(({ owner }) => owner.key === of.owner.key),
  }))
  const hidden = rows.length - ownersShown
  return (
    <div className="border-line border-t">
      <Table
        label="Owners of the boot’s time"
        columns={columns}
        rows={all ? rows : rows.slice(0, ownersShown)}
        rowKey={({ owner }) => owner.key}
      />
      {hidden > 0 && (
        <div className="border-line border-t px-4 py-2">
          <Button small aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? 'Show the largest' : `Show ${countOf(hidden, 'smaller owner')}`}
          </Button>
        </div>
      )}
    </div>
  )
}

function sourcesOf(segments: PathSegment[]): string {
  return [...new Set(segments.map(({ source }) => source))].join(', ')
}

function longestOf(segments: PathSegment[]): PathSegment | undefined {
  return segments.toSorted((a, b) => b.toUs - b.fromUs - (a.toUs - a.fromUs))[0]
}
