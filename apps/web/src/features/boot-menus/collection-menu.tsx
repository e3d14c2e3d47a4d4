'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type Collection = RouterOutputs['site']['get']['collections'][number]

/** As many as the API gives at once. */
const menusMax = 100

/** In a row: the menu that the collection's devices show. */
export function CollectionMenu({ collection }: { collection: Collection }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const mayChange = useMay('collection.change')
  const { data } = useQuery(trpc.bootMenu.list.queryOptions({ siteId: collection.siteId, limit: menusMax }))
  const choose = useMutation(
    trpc.collection.setBootMenu.mutationOptions({
      onSuccess: () =>
        Promise.all([
          queryClient.invalidateQueries(trpc.site.pathFilter()),
          queryClient.invalidateQueries(trpc.bootMenu.pathFilter()),
        ]),
      onError: (error) =>
        showToast({ title: `Could not update ${collection.name}.`, text: readableError(error), tone: 'failed' }),
    }),
  )
  const menus = new Map((data?.items ?? []).map(({ id, name }) => [id, name]))
  if (collection.bootMenu) menus.set(collection.bootMenu.id, collection.bootMenu.name)
  if (!mayChange || menus.size === 0)
    return <>{collection.bootMenu?.name ?? <span className="text-ink-soft">none</span>}</>
  return (
    <select
      aria-label={`Boot menu of ${collection.name}`}
      value={collection.bootMenu?.id ?? ''}
      onChange={(event) => choose.mutate({ collectionId: collection.id, menuId: event.target.value || null })}
      className="h-7 max-w-44 rounded-md border border-line-strong bg-surface px-1.5 text-ink text-sm hover:bg-hover"
    >
      <option value="">none</option>
      {[...menus].map(([id, name]) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  )
}
