'use client'

import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { SelectField, TextField } from '../../components/field'
import { Instant } from '../../components/instant'
import { ObjectPicker } from '../../components/object-picker'
import { ErrorState, Panel } from '../../components/page'
import { Tag } from '../../components/tag'
import { formatBytes } from '../../lib/format-quantity'
import { nextPage, type RouterOutputs, readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, SentenceList, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { adoptionSentences, type EdgeImage, imageName } from './adopt-text'

type EdgeDetail = RouterOutputs['edge']['get']

/** An edge may report news of its store this often. */
const refreshMs = 10_000
const pageSize = 20

/** Lists images that were imported by hand at the edge; absent if its store holds only versions of vDisks. */
export function EdgeImages({ edge }: { edge: EdgeDetail }) {
  const trpc = useTRPC()
  const [chosen, setChosen] = useState<EdgeImage | null>(null)
  const query = useInfiniteQuery(
    trpc.edge.images.infiniteQueryOptions(
      { edgeId: edge.id, limit: pageSize },
      { ...nextPage, refetchInterval: refreshMs },
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

const nameMax = 64
const newVdisk = 'new'

import { firstStates } from '../vdisks/version-types'

interface AdoptDialogProps {
  edge: RouterOutputs['edge']['get']
  image: EdgeImage
  onClose: () => void
}

/** Makes a version of an image that nobody has registered; what will happen stands above the button. */
function AdoptDialog({ edge, image, onClose }: AdoptDialogProps) {
  const trpc = useTRPC()
  const site = useQuery(trpc.site.get.queryOptions({ siteId: edge.siteId }))
  const farmId = site.data?.farmId
  const vdisks = usePicker('vdisk', farmId ? { farmId } : {}, { enabled: !!farmId })
  const [chosenId, setChosenId] = useState(image.parent?.vdiskId ?? newVdisk)
  const [name, setName] = useState(imageName(image).slice(0, nameMax))
  const [note, setNote] = useState('')
  const [state, setState] = useState<'test' | 'released'>('test')
  const adopt = useMutation(trpc.version.adopt.mutationOptions({ onSuccess: useSaved(onClose) }))
  const { parent } = image
  const ofParent = parent && { id: parent.vdiskId, name: parent.vdiskName }
  const chosen = chosenId === ofParent?.id ? ofParent : vdisks.itemOf(chosenId)
  const sentences = adoptionSentences({
    image,
    edgeName: edge.name,
    isNewVdisk: !chosen,
    state,
    vdiskName: chosen?.name ?? name.trim(),
    otherEdges: otherEdgesOf(site.data?.edges ?? [], edge.id),
  })
  return (
    <ObjectDialog
      title={`Adopt ${imageName(image)}`}
      action="Adopt"
      saving={adopt}
      disabled={!farmId || (!chosen && name.trim() === '')}
      onSave={() =>
        farmId &&
        adopt.mutate({
          edgeId: edge.id,
          versionId: image.versionId,
          note,
          state,
          ...(chosen ? { vdiskId: chosen.id } : { farmId, name: name.trim() }),
        })
      }
      onClose={onClose}
    >
      <ObjectPicker
        label="Adopt as a version of"
        picker={vdisks}
        value={chosen?.id ?? newVdisk}
        first={[{ value: newVdisk, label: 'New vDisk' }]}
        chosen={chosen && { value: chosen.id, label: chosen.name }}
        labelOf={(vdisk) => vdisk.name}
        onChange={setChosenId}
      />
      {!chosen && <TextField label="vDisk name" value={name} onChange={setName} maxLength={nameMax} />}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
      <SelectField
        label="After adoption"
        value={state}
        options={firstStates}
        onChange={(value) => setState(value === 'released' ? 'released' : 'test')}
      />
      <SentenceList sentences={sentences} />
    </ObjectDialog>
  )
}

function otherEdgesOf(edges: { id: string; name: string; revokedAt: string | null }[], edgeId: string): string[] {
  return edges.filter(({ id, revokedAt }) => id !== edgeId && revokedAt === null).map(({ name }) => name)
}
