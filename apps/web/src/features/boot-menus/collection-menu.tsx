'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ObjectSelect } from '../../components/object-picker'
import { useFailureToast } from '../../components/toast'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'

type Collection = RouterOutputs['site']['get']['collections'][number]

/** For a row: the menu that the collection's devices show. */
export function CollectionMenu({ collection }: { collection: Collection }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const mayChange = useMay('collection.change')
  const menus = usePicker('bootMenu', { siteId: collection.siteId })
  const choose = useMutation(
    trpc.collection.setBootMenu.mutationOptions({
      onSuccess: () =>
        Promise.all([
          queryClient.invalidateQueries(trpc.site.pathFilter()),
          queryClient.invalidateQueries(trpc.bootMenu.pathFilter()),
        ]),
      onError: useFailureToast(`Could not update ${collection.name}.`),
    }),
  )
  const { bootMenu } = collection
  if (!mayChange || (menus.items.length === 0 && menus.search === '' && !bootMenu))
    return <>{bootMenu?.name ?? <span className="text-ink-soft">none</span>}</>
  return (
    <ObjectSelect
      label={`Boot menu of ${collection.name}`}
      picker={menus}
      value={bootMenu?.id ?? ''}
      first={[{ value: '', label: 'none' }]}
      chosen={bootMenu && { value: bootMenu.id, label: bootMenu.name }}
      onChange={(menuId) => choose.mutate({ collectionId: collection.id, menuId: menuId || null })}
    />
  )
}
