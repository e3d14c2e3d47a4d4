'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Notice } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { staleRevision } from '../objects/stale'

/** To another farm; vDisks and boot menus do not go along. */
export function MoveSiteDialog({ site, onClose }: { site: RouterOutputs['site']['get']; onClose: () => void }) {
  const trpc = useTRPC()
  const farms = usePicker('farm', {})
  const others = { ...farms, items: farms.items.filter(({ id }) => id !== site.farmId) }
  const [farmId, setFarmId] = useState('')
  const move = useMutation(trpc.site.move.mutationOptions({ onSuccess: useSaved(onClose) }))
  const farm = others.itemOf(farmId) ?? others.items[0]
  const losesSome = move.error !== null && staleRevision(move.error) === null
  return (
    <ObjectDialog
      title={`Move ${site.name}`}
      action={losesSome ? 'Move and unassign' : 'Move site'}
      saving={move}
      disabled={!farm}
      onSave={(revision = site.revision) =>
        farm && move.mutate({ siteId: site.id, farmId: farm.id, revision, dropForeign: losesSome })
      }
      onClose={onClose}
    >
      <Notice tone="live">
        Edges, collections, devices and boots move with the site. vDisks and boot menus stay in the farm {site.farmName}
        .
      </Notice>
      <ObjectPicker
        label="New farm"
        picker={others}
        value={farm?.id ?? ''}
        labelOf={({ name }) => name}
        onChange={setFarmId}
        hint={farms.isLoaded && !farm && 'There is no other farm.'}
      />
    </ObjectDialog>
  )
}
