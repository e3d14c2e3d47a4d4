import { test } from 'vitest'
import { beforeFirstRelease, earlierStates, migrateFrom } from './under-load/migrate-from.ts'

/** A migration never changes, so the newest states are enough for every change; `long/` begins at each. */
const states = process.env.BOOTFARM_EVERY_STATE ? earlierStates : earlierStates.slice(-8)

test.each([beforeFirstRelease, ...states])(
  'from %s the later migrations are applied one by one while that release works: nothing committed is lost',
  (state) => migrateFrom(state),
)
