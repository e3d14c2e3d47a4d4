import type { AppRouter } from '@bootfarm/api/router'
import { InfiniteQueryObserver, QueryClient } from '@tanstack/react-query'
import { createTRPCClient, TRPCClientError } from '@trpc/client'
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query'
import { expect, test, vi } from 'vitest'
import type { RouterOutputs } from '../../lib/trpc.ts'
import { changeWriter, refreshAll, refreshDiscovered } from './apply-change.ts'

type BootDetail = RouterOutputs['boot']['get']

const bootId = '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3'

/** The cache of an open boot page; `requests` counts what the page asks of the API. */
function openPage() {
  const queryClient = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  const requests: string[] = []
  const client = createTRPCClient<AppRouter>({
    links: [
      () =>
        ({ op }) => ({
          subscribe: ({ error }) => {
            requests.push(op.path)
            error?.(new TRPCClientError('no API in this test'))
            return { unsubscribe: () => {} }
          },
          pipe: () => {
            throw new Error('not used')
          },
        }),
    ],
  })
  const trpc = createTRPCOptionsProxy<AppRouter>({ client, queryClient })
  const key = trpc.boot.get.queryKey({ bootId })
  const refreshLists = vi.fn()
  return { queryClient, trpc, key, requests, refreshLists, write: changeWriter({ queryClient, trpc }, refreshLists) }
}

const detail = (bytesOut: number) => ({ id: bootId, bytesOut, outcome: null }) as BootDetail

test('an event with the open boot updates its page without a request', async () => {
  const { queryClient, key, requests, refreshLists, write } = openPage()
  queryClient.setQueryData(key, detail(1))
  write({ kind: 'detail', boot: detail(2) })
  await expect.poll(() => queryClient.getQueryData(key)).toMatchObject({ bytesOut: 2 })
  expect(queryClient.getQueryState(key)?.isInvalidated).toBe(false)
  expect(refreshLists).not.toHaveBeenCalled()
  expect(requests).toEqual([])
})

test('an answer that is older than the event does not replace it', async () => {
  const { queryClient, key, write } = openPage()
  const { promise, resolve } = Promise.withResolvers<BootDetail>()
  const first = queryClient.fetchQuery({ queryKey: key, queryFn: () => promise }).catch(() => null)
  write({ kind: 'detail', boot: detail(2) })
  await expect.poll(() => queryClient.getQueryData(key)).toMatchObject({ bytesOut: 2 })
  resolve(detail(1))
  await first
  await promise
  expect(queryClient.getQueryState(key)).toMatchObject({ status: 'success', data: { bytesOut: 2 } })
})

test('a new connection reads everything again but the boot that it sends', () => {
  const { queryClient, trpc, key } = openPage()
  const lists = [trpc.farm.list.queryKey({}), trpc.boot.get.queryKey({ bootId: 'another' })]
  for (const one of lists) queryClient.setQueryData<unknown>(one, {})
  queryClient.setQueryData(key, detail(1))
  refreshAll({ queryClient, trpc }, bootId)
  expect([...lists, key].map((one) => queryClient.getQueryState(one)?.isInvalidated)).toEqual([true, true, false])
  refreshAll({ queryClient, trpc }, null)
  expect(queryClient.getQueryState(key)?.isInvalidated).toBe(true)
})

test('a first connection that continues after what the server read asks only for what has no number', () => {
  const { queryClient, trpc, key } = openPage()
  const numbered = [trpc.farm.list.queryKey({}), trpc.boot.list.queryKey({})]
  const others = [trpc.discovered.waitingCount.queryKey(), trpc.discovered.list.queryKey({})]
  for (const one of [...numbered, ...others]) queryClient.setQueryData<unknown>(one, {})
  queryClient.setQueryData(key, detail(1))
  refreshDiscovered({ queryClient, trpc })
  const isRead = (one: typeof key) => queryClient.getQueryState(one)?.isInvalidated
  expect([...numbered, key].map((one) => isRead(one as typeof key))).toEqual([false, false, false])
  expect(others.map((one) => isRead(one as unknown as typeof key))).toEqual([true, true])
})

test('the page of a withdrawn boot is loaded again', () => {
  const { queryClient, key, write } = openPage()
  queryClient.setQueryData(key, detail(1))
  write({ kind: 'withdrawn', bootId })
  expect(queryClient.getQueryState(key)?.isInvalidated).toBe(true)
})

test('lists are read again when a boot starts, ends or takes a power order, not at each report', () => {
  const { refreshLists, write } = openPage()
  const boot = { ...detail(1), deviceId: null, takenPowerOrder: null }
  write({ kind: 'boot', boot })
  write({ kind: 'boot', boot: { ...boot, bytesOut: 2 } })
  expect(refreshLists).toHaveBeenCalledTimes(1)
  write({ kind: 'boot', boot: { ...boot, outcome: 'ready' } })
  expect(refreshLists).toHaveBeenCalledTimes(2)
  write({ kind: 'discovered' })
  expect(refreshLists).toHaveBeenCalledTimes(3)
})

test('a further page of a list arrives although updates come meanwhile, and then the list is read again', async () => {
  const { queryClient, trpc } = openPage()
  const waiting: PromiseWithResolvers<number>[] = []
  const list = new InfiniteQueryObserver(queryClient, {
    queryKey: ['list'],
    queryFn: () => {
      const answer = Promise.withResolvers<number>()
      waiting.push(answer)
      return answer.promise
    },
    initialPageParam: 0,
    getNextPageParam: (_last, pages) => pages.length,
  })
  const end = list.subscribe(() => {})
  const pages = () => list.getCurrentResult().data?.pages
  const answer = async (index: number) => {
    await expect.poll(() => waiting.length).toBeGreaterThan(index)
    waiting[index]?.resolve(index)
  }
  await answer(0)
  await expect.poll(() => pages()).toEqual([0])
  void list.fetchNextPage()
  refreshAll({ queryClient, trpc }, null)
  await answer(1)
  await expect.poll(() => pages()).toEqual([0, 1])
  await answer(2)
  await answer(3)
  await expect.poll(() => pages()).toEqual([2, 3])
  end()
})
