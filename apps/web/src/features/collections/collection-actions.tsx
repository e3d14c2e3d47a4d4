'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { countOf } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'
import { DeleteButton } from '../objects/delete-button'
import { useMay } from '../session/use-may'
import { EditCollectionDialog, NewCollectionDialog } from './collection-dialog'

type Site = RouterOutputs['site']['get']
type Collection = Site['collections'][number]

export function NewCollection({ site }: { site: Site }) {
  const [open, setOpen] = useState(false)
  if (!useMay('collection.change', { farmId: site.farmId, siteId: site.id })) return null
  return (
    <>
      <Button className="h-7!" onClick={() => setOpen(true)}>
        New collection
      </Button>
      {open && <NewCollectionDialog site={site} onClose={() => setOpen(false)} />}
    </>
  )
}

/** In a row. */
export function CollectionActions({ collection }: { collection: Collection }) {
  const [open, setOpen] = useState(false)
  if (!useMay('collection.change', { siteId: collection.siteId, collectionId: collection.id })) return null
  return (
    <span className="inline-flex gap-2">
      <Button className="h-7!" aria-label={`Edit ${collection.name}`} onClick={() => setOpen(true)}>
        Edit
      </Button>
      <DeleteButton
        target={{ kind: 'collection', id: collection.id }}
        name={collection.name}
        label={`Delete ${collection.name}`}
        compact
      >
        <p>This also deletes its {countOf(collection.deviceCount, 'device')}. Edges stop serving them.</p>
      </DeleteButton>
      {open && <EditCollectionDialog collectionId={collection.id} onClose={() => setOpen(false)} />}
    </span>
  )
}
