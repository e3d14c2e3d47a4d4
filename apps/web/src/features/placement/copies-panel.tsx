'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, ObjectLink } from '../../components/button'
import { ErrorState, LoadingState, Panel, Skeleton } from '../../components/page'
import { type Column, GroupedTable } from '../../components/table'
import { Tag } from '../../components/tag'
import { countOf } from '../../lib/format-quantity'
import { readableError, useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { useMay } from '../session/use-may'
import { type Copies, type Copy, copyText, copyTones, missingTexts, placementSentences, repairText } from './copy-text'
import { PlacementDialog } from './placement-dialog'

type Edge = Copies['edges'][number]

/** The newest; all are in the API. */
const versionsShownMax = 6
const reasonsShownMax = 8
/** While something moves. */
const fetchingRefreshMs = 2000

interface CopiesPanelProps {
  vdisk: { id: string; name: string; farmId: string }
}

/** Which edges hold, fetch or lack each version, and which of them are to hold it. */
export function CopiesPanel({ vdisk }: CopiesPanelProps) {
  const trpc = useTRPC()
  const query = useQuery(
    trpc.placement.copies.queryOptions(
      { vdiskId: vdisk.id },
      {
        refetchInterval: ({ state }) =>
          state.data?.copies.some(({ state }) => state === 'fetching') ? fetchingRefreshMs : heartbeatRefreshMs,
      },
    ),
  )
  return (
    <Panel title="Copies at edges" aside={shownEdges(query.data)} flush>
      <PlacementRow vdisk={vdisk} />
      {query.data ? (
        <CopiesTable copies={query.data} />
      ) : query.error ? (
        <ErrorState
          title="Could not load the copies."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      ) : (
        <LoadingState label="Loading copies">
          <Skeleton className="m-4 h-4 w-64" />
        </LoadingState>
      )}
    </Panel>
  )
}

/** Nothing where all of them are shown. */
function shownEdges(copies: Copies | undefined): string | undefined {
  if (!copies || copies.edges.length === copies.edgeCount) return undefined
  return `First ${copies.edges.length} of ${countOf(copies.edgeCount, 'edge')}`
}

function PlacementRow({ vdisk }: CopiesPanelProps) {
  const trpc = useTRPC()
  const [open, setOpen] = useState(false)
  const { data: placement } = useQuery(trpc.placement.get.queryOptions({ vdiskId: vdisk.id }))
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  if (!placement) return null
  return (
    <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 border-line border-b px-4 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-60">
        <p className="text-ink-faint text-xs">Placement{placement.isInherited && ' of the farm'}</p>
        <ul aria-label="Placement" className="mt-1 flex flex-col gap-1 text-ink">
          {placementSentences(placement).map((sentence) => (
            <li key={sentence} className="break-words">
              {sentence}
            </li>
          ))}
        </ul>
      </div>
      {mayChange && (
        <Button small onClick={() => setOpen(true)}>
          Edit placement
        </Button>
      )}
      {open && <PlacementDialog vdisk={vdisk} placement={placement} onClose={() => setOpen(false)} />}
    </div>
  )
}

function CopiesTable({ copies }: { copies: Copies }) {
  const shown = copies.versions.slice(0, versionsShownMax)
  const byCell = new Map(copies.copies.map((copy) => [`${copy.versionId} ${copy.edgeId}`, copy]))
  const columns: Column<Edge>[] = [
    {
      title: 'Edge',
      wide: true,
      cell: ({ id, name, isOnline }) => (
        <span className="inline-flex items-center gap-2">
          <ObjectLink href={`/edges/${id}`}>{name}</ObjectLink>
          {!isOnline && <span className="text-ink-soft text-xs">offline</span>}
        </span>
      ),
    },
    ...shown.map(({ id, number }) => ({
      title: `Version ${number}`,
      cell: (edge: Edge) => <CopyCell copy={byCell.get(`${id} ${edge.id}`)} />,
    })),
  ]
  if (copies.edges.length === 0 || shown.length === 0)
    return (
      <p className="p-4 text-ink-soft text-sm">
        No edge holds a version of this vDisk, or is to hold one. Import an image or seal a version first.
      </p>
    )
  const sites = Map.groupBy(copies.edges, ({ siteId }) => siteId)
  return (
    <>
      <GroupedTable
        label="Copies of versions"
        columns={columns}
        groups={[...sites].map(([key, rows]) => ({ key, heading: rows[0]?.siteName, rows }))}
        rowKey={({ id }) => id}
      />
      {copies.versions.length > shown.length && (
        <p className="border-line border-t px-4 py-2 text-ink-soft text-xs">
          The newest {shown.length} of {countOf(copies.versions.length, 'version')} are shown.
        </p>
      )}
      <Reasons copies={copies} />
    </>
  )
}

function CopyCell({ copy }: { copy: Copy | undefined }) {
  if (!copy) return <span className="text-ink-faint text-xs">not placed</span>
  const repairs = repairText(copy)
  return (
    <span className="inline-flex flex-wrap items-center gap-2">
      <Tag tone={copyTones[copy.state]}>{copyText(copy)}</Tag>
      {repairs && <span className="text-ink-soft text-xs">{repairs}</span>}
    </span>
  )
}

/** Why edges lack versions that they are to hold: the first of them. */
function Reasons({ copies }: { copies: Copies }) {
  const texts = missingTexts(copies)
  if (texts.length === 0) return null
  return (
    <ul aria-label="Why versions are missing" className="flex flex-col gap-1 border-line border-t px-4 py-3 text-sm">
      {texts.slice(0, reasonsShownMax).map((text) => (
        <li key={text} className="break-words text-ink-soft">
          {text}
        </li>
      ))}
      {texts.length > reasonsShownMax && (
        <li className="text-ink-faint text-xs">And {countOf(texts.length - reasonsShownMax, 'more reason')}.</li>
      )}
    </ul>
  )
}
