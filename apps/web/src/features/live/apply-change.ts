import type { QueryClient } from '@tanstack/react-query'
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
        queryClient.setQueryData(trpc.boot.get.queryKey({ bootId: change.boot.id }), change.boot)
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
