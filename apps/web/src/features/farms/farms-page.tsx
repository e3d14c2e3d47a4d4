'use client'

import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { TextField } from '../../components/field'
import { Instant } from '../../components/instant'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, Page, PageHeader, Panel } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { formatCount } from '../../lib/format-quantity'
import { type Listed, nextPage, readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { DeleteButton, ObjectDialog, useSaved } from '../objects/object-dialog'
import { FarmPlacementDialog } from '../placement/placement-dialog'
import { useMay } from '../session/use-may'

type Farm = Listed<'farm'>
type Store = Listed<'store'>

const farmColumns: Column<Farm>[] = [
  { title: 'Name', wide: true, cell: (farm) => <span className="font-medium">{farm.name}</span> },
  { title: 'Created', align: 'right', from: 'sm', cell: (farm) => <Instant at={farm.createdAt} /> },
  { title: 'Actions', align: 'right', cell: (farm) => <FarmActions farm={farm} /> },
]
const storeColumns: Column<Store>[] = [
  { title: 'Name', cell: (store) => <span className="font-medium">{store.name}</span> },
  { title: 'Farm', from: 'sm', cell: (store) => store.farmName },
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

function FarmActions({ farm }: { farm: Farm }) {
  const [open, setOpen] = useState(false)
  const mayChange = useMay('farm.change', { farmId: farm.id })
  const mayPlace = useMay('vdisk.change', { farmId: farm.id })
  return (
    <span className="inline-flex gap-2">
      {mayPlace && <FarmPlacementButton farm={farm} />}
      {mayChange && (
        <>
          <Button small aria-label={`Rename ${farm.name}`} onClick={() => setOpen(true)}>
            Rename
          </Button>
          <DeleteButton target={{ kind: 'farm', id: farm.id }} name={farm.name} label={`Delete ${farm.name}`} compact>
            <p>This also deletes its sites, collections, devices, vDisks and boot menus.</p>
          </DeleteButton>
        </>
      )}
      {open && <FarmDialog farm={farm} onClose={() => setOpen(false)} />}
    </span>
  )
}

function FarmPlacementButton({ farm }: { farm: Farm }) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button small busy={open} aria-label={`Placement of vDisks in ${farm.name}`} onClick={() => setOpen(true)}>
        Placement
      </Button>
      {open && <FarmPlacement farm={farm} onClose={() => setOpen(false)} />}
    </>
  )
}

/** Reads the placement when it is asked for: most farms keep the first one. */
function FarmPlacement({ farm, onClose }: { farm: Farm; onClose: () => void }) {
  const trpc = useTRPC()
  const { data, error } = useQuery(
    trpc.placement.getOfFarm.queryOptions({ farmId: farm.id }, { staleTime: 0, gcTime: 0 }),
  )
  if (data) return <FarmPlacementDialog farm={farm} placement={data} onClose={onClose} />
  if (!error) return null
  return (
    <span role="alert" className="inline-flex items-center gap-2 text-failed text-xs">
      {readableError(error)}
      <Button small onClick={onClose}>
        Close
      </Button>
    </span>
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

/** @param farm absent for a new one */
function FarmDialog({ farm, onClose }: { farm?: Farm; onClose: () => void }) {
  const trpc = useTRPC()
  const [seen] = useState(farm)
  const [name, setName] = useState(seen?.name ?? '')
  const onSuccess = useSaved(onClose)
  const create = useMutation(trpc.farm.create.mutationOptions({ onSuccess }))
  const update = useMutation(trpc.farm.update.mutationOptions({ onSuccess }))
  return (
    <ObjectDialog
      title={seen ? `Rename ${seen.name}` : 'New farm'}
      action={seen ? 'Save' : 'Create farm'}
      saving={seen ? update : create}
      disabled={name.trim() === ''}
      onSave={(revision = seen?.revision ?? 1) =>
        seen ? update.mutate({ farmId: seen.id, revision, name }) : create.mutate({ name })
      }
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} hint="A farm groups sites, vDisks and boot menus." />
    </ObjectDialog>
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
