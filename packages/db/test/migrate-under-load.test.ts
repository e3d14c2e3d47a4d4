import { test } from 'vitest'
import { beforeFirstRelease, earlierStates, migrateFrom } from './under-load/migrate-from.ts'

test.each([...earlierStates, beforeFirstRelease])(
  'from %s the later migrations are applied one by one while that release works: nothing committed is lost',
  (state) => migrateFrom(state),
)
