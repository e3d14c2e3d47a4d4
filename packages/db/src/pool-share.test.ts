import { expect, test } from 'vitest'
import { PoolShares } from './pool-share.ts'

/** Work that runs until it is ended. */
function begin(shares: PoolShares, organizationId: string, maxWaitMs?: number) {
  const { promise, resolve: end } = Promise.withResolvers<void>()
  const state = { isRunning: false }
  const done = shares.within(
    organizationId,
    () => {
      state.isRunning = true
      return promise
    },
    maxWaitMs,
  )
  return { state, end, done }
}

test('an organization holds its share of the pool, the others have theirs, and who waits comes in order', async () => {
  const shares = new PoolShares(10)
  const own = Array.from({ length: 7 }, () => begin(shares, 'a'))
  const other = begin(shares, 'b')
  await Promise.resolve()
  const running = () => own.map(({ state }) => state.isRunning)
  expect(running()).toEqual([true, true, true, true, false, false, false])
  expect(other.state.isRunning).toBe(true)
  own[2]?.end()
  await own[2]?.done
  await expect.poll(running).toEqual([true, true, true, true, true, false, false])
  for (const { end } of [...own, other]) end()
  await Promise.all([...own, other].map(({ done }) => done))
  expect(own[6]?.state.isRunning).toBe(true)
})

test('who waits too long is refused like one without a connection, and takes no place later', async () => {
  const shares = new PoolShares(1)
  const first = begin(shares, 'a')
  const late = begin(shares, 'a', 1)
  await expect(late.done).rejects.toMatchObject({ code: 'P2028' })
  first.end()
  await first.done
  const next = begin(shares, 'a')
  next.end()
  await next.done
  expect([late.state.isRunning, next.state.isRunning]).toEqual([false, true])
})

test('work that fails gives its place back', async () => {
  const shares = new PoolShares(1)
  await expect(shares.within('a', () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  await expect(shares.within('a', async () => 'done')).resolves.toBe('done')
})
