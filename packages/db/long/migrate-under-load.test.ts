import { test } from 'vitest'
import { earlierStates, migrateFrom } from '../test/under-load/migrate-from.ts'

test.each(earlierStates)(
  'from %s the later migrations are applied one by one while that release works: nothing committed is lost',
  (state) => migrateFrom(state),
)
