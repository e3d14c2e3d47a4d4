import type { TenantDb } from '@bootfarm/db'
import { afterEach, expect, test } from 'vitest'
import { listeners } from '../listeners.ts'
import { type Events, emit, type Listeners, setListeners } from './event-bus.ts'

/** One program has one set of listeners, and other tests of this worker need those of the product. */
afterEach(() => setListeners(listeners))

const ended = { db: {} as TenantDb, now: new Date(0), organizationId: 'o', runs: [] }

function listenersOf(runsEnded: Listeners['runsEnded']): Listeners {
  return { ...listeners, runsEnded }
}

test('listeners run one after the other, each with the transaction of the event', async () => {
  const steps: string[] = []
  const listener = (name: string) => async (event: Events['runsEnded']) => {
    expect(event.db).toBe(ended.db)
    steps.push(`${name} starts`)
    await Promise.resolve()
    steps.push(`${name} ends`)
  }
  setListeners(listenersOf([listener('first'), listener('second')]))
  await emit('runsEnded', ended)
  expect(steps).toEqual(['first starts', 'first ends', 'second starts', 'second ends'])
})

test('an error in a listener reaches who emitted the event, and later listeners do not run', async () => {
  const steps: string[] = []
  setListeners(
    listenersOf([
      async () => {
        throw new Error('no message could be written')
      },
      async () => {
        steps.push('second')
      },
    ]),
  )
  await expect(emit('runsEnded', ended)).rejects.toThrow('no message could be written')
  expect(steps).toEqual([])
})
