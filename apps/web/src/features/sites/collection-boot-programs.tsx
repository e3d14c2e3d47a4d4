'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useFailureToast } from '../../components/toast'
import { type RouterOutputs, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type Collection = RouterOutputs['site']['get']['collections'][number]

/** For a row: the set for the collection's devices instead of the site's. */
export function CollectionBootPrograms({ collection }: { collection: Collection }) {
  const trpc = useTRPC()
  const mayChange = useMay('collection.change')
  const { data } = useQuery(trpc.site.bootProgramSets.queryOptions({ siteId: collection.siteId }))
  const choose = useMutation(
    trpc.collection.setBootProgramSet.mutationOptions({
      onSuccess: useRefresh(trpc.site.pathFilter()),
      onError: useFailureToast(`Could not update ${collection.name}.`),
    }),
  )
  const value = collection.bootProgramSet ?? ''
  const names = new Set([...(data?.sets ?? []).map(({ name }) => name), ...(value ? [value] : [])])
  if (!mayChange || names.size === 0) return <>{value || <span className="text-ink-soft">Inherit from site</span>}</>
  return (
    <select
      aria-label={`Boot programs of ${collection.name}`}
      value={value}
      onChange={(event) => choose.mutate({ collectionId: collection.id, bootProgramSet: event.target.value || null })}
      className="h-7 rounded-md border border-line-strong bg-surface px-1.5 text-ink text-sm hover:bg-hover"
    >
      <option value="">Inherit from site</option>
      {[...names].map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  )
}
