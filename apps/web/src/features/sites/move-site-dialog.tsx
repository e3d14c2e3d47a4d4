'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Notice, SelectField } from '../../components/field'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { staleRevision } from '../objects/stale'

/** To another farm; vDisks and boot menus do not go along. */
export function MoveSiteDialog({ site, onClose }: { site: RouterOutputs['site']['get']; onClose: () => void }) {
  const trpc = useTRPC()
  const farms = useQuery(trpc.farm.list.queryOptions({ limit: 100 }))
  const [farmId, setFarmId] = useState('')
  const move = useMutation(trpc.site.move.mutationOptions({ onSuccess: useSaved(onClose) }))
  const options = (farms.data?.items ?? []).filter(({ id }) => id !== site.farmId)
  const farm = options.find(({ id }) => id === farmId) ?? options[0]
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
      <SelectField
        label="New farm"
        value={farm?.id ?? ''}
        options={options.map(({ id, name }) => ({ value: id, label: name }))}
        onChange={setFarmId}
        hint={options.length === 0 ? 'There is no other farm.' : undefined}
      />
    </ObjectDialog>
  )
}
