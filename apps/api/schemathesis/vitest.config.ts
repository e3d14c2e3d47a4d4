import { defineConfig } from 'vitest/config'

/** A separate layer (scripts/test/layers.mjs): it needs a program that the services' tests do without. */
export default defineConfig({
  test: {
    name: 'schemathesis',
    root: import.meta.dirname,
    include: ['*.test.ts'],
    globalSetup: '../../../packages/db/test/global-setup.ts',
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})
