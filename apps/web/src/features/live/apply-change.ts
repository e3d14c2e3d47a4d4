import { hashKey, type Query, type QueryClient } from '@tanstack/react-query'
import type { BootChange, useTRPC } from '../../lib/trpc'
import { applyBootChange } from './apply-boot-change.ts'

const bootsRememberedMax = 500

type Change = Exclude<BootChange, { kind: 'synced' }>

interface Cache {
  queryClient: QueryClient
  trpc: ReturnType<typeof useTRPC>
}

/**
 * Returns a function that writes a change into the cache, and so onto the open page. It calls `refreshLists` for
 * changes that may alter a list or a count.
 */
export function changeWriter({ queryClient, trpc }: Cache, refreshLists: () => void): (change: Change) => void {
  const turns = new Map<string, string>()
  return (change) => {
    switch (change.kind) {
      case 'discovered':
        refreshLists()
        return
      case 'withdrawn':
        refreshLists()
        void queryClient.invalidateQueries(trpc.boot.get.queryFilter({ bootId: change.bootId }))
        return
      case 'detail':
        void setBoot({ queryClient, trpc }, change.boot)
        return
      case 'boot': {
        const { boot } = change
        applyBootChange(queryClient, trpc, boot)
        // A boot enters or leaves a list, or changes a count, only when it starts, ends or takes a power order.
        const turn = `${boot.outcome} ${boot.takenPowerOrder?.id}`
        if (turns.get(boot.id) === turn) return
        if (turns.size >= bootsRememberedMax) turns.clear()
        turns.set(boot.id, turn)
        refreshLists()
      }
    }
  }
}

/** An answer that is still on its way is older than the event, and must not replace it. */
async function setBoot({ queryClient, trpc }: Cache, boot: Extract<Change, { kind: 'detail' }>['boot']): Promise<void> {
  const input = { bootId: boot.id }
  await queryClient.cancelQueries(trpc.boot.get.queryFilter(input))
  queryClient.setQueryData(trpc.boot.get.queryKey(input), boot)
}

/** Reads everything again, without the boot of the open page: the live updates send it next. */
export function refreshAll({ queryClient, trpc }: Cache, openBootId: string | null): void {
  const pushed = openBootId && hashKey(trpc.boot.get.queryKey({ bootId: openBootId }))
  readAgain(queryClient, ({ queryHash }) => queryHash !== pushed)
}

/** Reads discovered devices again: no number says whether they changed since the server made the page. */
export function refreshDiscovered({ queryClient, trpc }: Cache): void {
  void queryClient.invalidateQueries(trpc.discovered.pathFilter())
}

/**
 * Reads the matching queries again. To read a list again cancels a further page that is on its way, so that "Load more"
 * would do nothing: such a list is read again as soon as it has that page.
 */
export function readAgain(queryClient: QueryClient, matches: (query: Query) => boolean): void {
  for (const query of queryClient.getQueryCache().findAll({ predicate: matches })) {
    const filter = { queryKey: query.queryKey, exact: true }
    if (!isLoadingMore(query)) void queryClient.invalidateQueries(filter)
    else
      void Promise.resolve(query.promise)
        .catch(() => undefined)
        .then(() => queryClient.invalidateQueries(filter))
  }
}

const isLoadingMore = ({ state }: Query) => state.fetchStatus !== 'idle' && state.fetchMeta?.fetchMore !== undefined
