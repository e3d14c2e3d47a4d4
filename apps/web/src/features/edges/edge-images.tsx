'use client'

import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/panel'
import { ErrorState } from '../../components/states'
import { Tag } from '../../components/tag'
import { formatBytes } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { AdoptDialog } from './adopt-dialog'
import { type EdgeImage, imageName } from './adopt-text'

type EdgeDetail = RouterOutputs['edge']['get']

/** As often as an edge may have said something new of its store. */
const refreshMs = 10_000
const pageSize = 20

/** What was imported by hand at the edge; nothing where all that its store holds are versions of vDisks. */
export function EdgeImages({ edge }: { edge: EdgeDetail }) {
  const trpc = useTRPC()
  const [chosen, setChosen] = useState<EdgeImage | null>(null)
  const query = useInfiniteQuery(
    trpc.edge.images.infiniteQueryOptions(
      { edgeId: edge.id, limit: pageSize },
      { getNextPageParam: ({ nextCursor }) => nextCursor, refetchInterval: refreshMs },
    ),
  )
  const mayAdopt = useMay('vdisk.change', { siteId: edge.siteId })
  const images = query.data?.pages.flatMap(({ items }) => items) ?? []
  if (query.error && !query.data)
    return (
      <Panel title="Images without a vDisk" flush>
        <ErrorState
          title="Could not load the images on this edge."
          text={readableError(query.error)}
          onRetry={() => query.refetch()}
        />
      </Panel>
    )
  if (images.length === 0) return null
  return (
    <Panel title="Images without a vDisk" aside="imported on this edge by hand" flush>
      <ul aria-label="Images without a vDisk">
        {images.map((image) => (
          <ImageRow
            key={image.versionId}
            image={image}
            onAdopt={mayAdopt && !edge.revokedAt ? () => setChosen(image) : null}
          />
        ))}
      </ul>
      {query.hasNextPage && (
        <div className="border-line border-t p-4">
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
      {chosen && <AdoptDialog edge={edge} image={chosen} onClose={() => setChosen(null)} />}
    </Panel>
  )
}

const stateText = {
  present: null,
  importing: 'being imported',
  damaged: 'damaged',
  missing: 'missing',
} as const

function ImageRow({ image, onAdopt }: { image: EdgeImage; onAdopt: (() => void) | null }) {
  const { sizeBytes, ownBytes, madeAt, parent, problem, state, versionId } = image
  const name = imageName(image)
  const word = stateText[state]
  return (
    <li className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 border-line border-t px-4 py-3 text-sm first:border-t-0">
      <div className="flex min-w-0 flex-1 basis-72 flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 break-words font-medium text-ink">{name}</span>
          {word && <Tag tone={state === 'importing' ? 'live' : 'failed'}>{word}</Tag>}
        </div>
        <p className="break-words text-ink-soft text-xs">
          {sizeBytes !== null && <>a disk of {formatBytes(sizeBytes)}, </>} {formatBytes(ownBytes)} unique
          {madeAt && (
            <>
              , created <Instant at={madeAt} />
            </>
          )}
          {parent && (
            <>
              , based on version {parent.number} of {parent.vdiskName}
            </>
          )}
        </p>
        <p className="break-all font-mono text-ink-faint text-xs">{versionId}</p>
        {problem && <p className="break-words text-failed text-xs">{problem}</p>}
      </div>
      {onAdopt && (
        <Button disabled={problem !== null} aria-label={`Adopt ${name}`} onClick={onAdopt}>
          Adopt
        </Button>
      )}
    </li>
  )
}
