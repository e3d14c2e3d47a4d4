import { afterEach, beforeEach } from 'vitest'
import { limitWaits } from './running-process.ts'

// Loaded before each test file (vitest.config.ts).
beforeEach(({ task }) => limitWaits(task.timeout))
afterEach(() => limitWaits(undefined))
