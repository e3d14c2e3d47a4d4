'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { TextField } from '../../components/field'
import { type Listed, readableError, useTRPC } from '../../lib/trpc'
import { DeleteButton, ObjectDialog, useSaved } from '../objects/object-dialog'
import { FarmPlacementDialog } from '../placement/placement-dialog'
import { useMay } from '../session/use-may'

type Farm = Listed<'farm'>

/** @param leaveTo where to go once it is deleted: from its own page */
export function FarmActions({ farm, leaveTo }: { farm: Farm; leaveTo?: string }) {
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
          <DeleteButton
            target={{ kind: 'farm', id: farm.id }}
            name={farm.name}
            label={`Delete ${farm.name}`}
            compact
            {...(leaveTo && { leaveTo })}
          >
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

/** @param farm absent for a new one */
export function FarmDialog({ farm, onClose }: { farm?: Farm; onClose: () => void }) {
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
