import { afterAll, afterEach, beforeEach } from 'vitest'
import { endAll, lastLinesOfAll, limitWaits } from './running-process.ts'

// Loaded before each test file (vitest.config.ts).
beforeEach(({ task, onTestFailed }) => {
  limitWaits(task.timeout)
  onTestFailed(() => {
    // The test waited for something other than a program's output, which is unknown.
    if (task.result?.errors?.some(({ name }) => name === 'TestTimeoutError'))
      process.stderr.write(`when time was over:\n${lastLinesOfAll()}\n`)
  })
})
afterEach(() => limitWaits(undefined))
// Runs after the hooks of the file itself.
afterAll(endAll)
