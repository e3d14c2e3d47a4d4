import { expect, test } from 'vitest'
import { earlierStates, migrateFrom } from './under-load/migrate-from.ts'

/** With several to come, and with one; from each state: the layer `migrations-long`. */
const states = ['20261121150000_edge_identity', earlierStates.at(-1) ?? '']

test.each(states)(
  'from %s the later migrations are applied one by one while that release works: nothing committed is lost',
  async (state) => {
    expect(earlierStates).toContain(state)
    await migrateFrom(state)
  },
)
