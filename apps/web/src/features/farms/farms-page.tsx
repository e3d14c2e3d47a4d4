'use client'

import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, ObjectLink, TextLink } from '../../components/button'
import { TextField } from '../../components/field'
import { Instant } from '../../components/instant'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import { type Listed, nextPage, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { DeleteButton, ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { FarmActions, FarmDialog } from './farm-actions'

type Farm = Listed<'farm'>
type Store = Listed<'store'>

const farmColumns: Column<Farm>[] = [
  { title: 'Name', wide: true, cell: (farm) => <ObjectLink href={`/farms/${farm.id}`}>{farm.name}</ObjectLink> },
  { title: 'Created', align: 'right', from: 'sm', cell: (farm) => <Instant at={farm.createdAt} /> },
  { title: 'Actions', align: 'right', cell: (farm) => <FarmActions farm={farm} /> },
]
const storeColumns: Column<Store>[] = [
  { title: 'Name', cell: (store) => <span className="font-medium">{store.name}</span> },
  {
    title: 'Farm',
    from: 'sm',
    cell: ({ farmId, farmName }) => (
      <TextLink quiet href={`/farms/${farmId}`}>
        {farmName}
      </TextLink>
    ),
  },
  { title: 'Note', wide: true, from: 'md', cell: (store) => store.note },
  { title: 'vDisks', align: 'right', cell: (store) => formatCount(store.vdiskCount) },
  { title: 'Actions', align: 'right', cell: (store) => <StoreActions store={store} /> },
]

/** Farms, and the stores of their vDisks. */
export function FarmsPage() {
  const trpc = useTRPC()
  const farms = useInfiniteQuery(trpc.farm.list.infiniteQueryOptions({}, nextPage))
  const stores = useInfiniteQuery(trpc.store.list.infiniteQueryOptions({}, nextPage))
  const [open, setOpen] = useState<'farm' | 'store' | null>(null)
  const mayFarm = useMay('farm.change')
  const mayStore = useMay('store.change')
  return (
    <Page>
      <PageHeader
        title="Farms and stores"
        summary="Farms group sites, vDisks and boot menus. Stores name the storage location of vDisks on edges."
        actions={
          mayFarm && (
            <Button look="primary" onClick={() => setOpen('farm')}>
              New farm
            </Button>
          )
        }
      />
      <Panel title="Farms" flush>
        <PagedList
          label="Farms"
          query={farms}
          columns={farmColumns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState title="No farms yet." text="Create a farm first. Sites, vDisks and devices belong to a farm." />
          }
        />
      </Panel>
      <Panel
        title="Stores"
        flush
        aside={
          mayStore && (
            <Button small onClick={() => setOpen('store')}>
              New store
            </Button>
          )
        }
      >
        <PagedList
          label="Stores"
          query={stores}
          columns={storeColumns}
          rowKey={({ id }) => id}
          empty={
            <EmptyState title="No stores yet." text="Stores name the storage location of vDisks on edges (optional)." />
          }
        />
      </Panel>
      {open === 'farm' && <FarmDialog onClose={() => setOpen(null)} />}
      {open === 'store' && <StoreDialog onClose={() => setOpen(null)} />}
    </Page>
  )
}

function StoreActions({ store }: { store: Store }) {
  const [open, setOpen] = useState(false)
  if (!useMay('store.change', { farmId: store.farmId })) return null
  return (
    <span className="inline-flex gap-2">
      <Button small aria-label={`Edit ${store.name}`} onClick={() => setOpen(true)}>
        Edit
      </Button>
      <DeleteButton target={{ kind: 'store', id: store.id }} name={store.name} label={`Delete ${store.name}`} compact>
        <p>Files on edges are not deleted.</p>
      </DeleteButton>
      {open && <StoreDialog store={store} onClose={() => setOpen(false)} />}
    </span>
  )
}

/** @param store absent for a new one */
function StoreDialog({ store, onClose }: { store?: Store; onClose: () => void }) {
  const trpc = useTRPC()
  const farms = usePicker('farm', {})
  const [seen] = useState(store)
  const [name, setName] = useState(seen?.name ?? '')
  const [note, setNote] = useState(seen?.note ?? '')
  const [chosenId, setChosenId] = useState(seen?.farmId ?? '')
  const onSuccess = useSaved(onClose)
  const create = useMutation(trpc.store.create.mutationOptions({ onSuccess }))
  const update = useMutation(trpc.store.update.mutationOptions({ onSuccess }))
  const farm = farms.itemOf(chosenId) ?? farms.items[0]
  return (
    <ObjectDialog
      title={seen ? `Edit ${seen.name}` : 'New store'}
      action={seen ? 'Save' : 'Create store'}
      saving={seen ? update : create}
      disabled={name.trim() === '' || !farm}
      onSave={(revision = seen?.revision ?? 1) => {
        if (seen) update.mutate({ storeId: seen.id, revision, name, note })
        else if (farm) create.mutate({ farmId: farm.id, name, note })
      }}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} />
      {!seen && <ObjectPicker label="Farm" picker={farms} value={farm?.id ?? ''} onChange={setChosenId} />}
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
    </ObjectDialog>
  )
}
