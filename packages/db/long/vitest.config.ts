import { defineConfig } from 'vitest/config'

/** A layer of its own (scripts/test/layers.mjs): from each earlier state, which takes too long for every change. */
export default defineConfig({
  test: {
    name: 'db-long',
    root: import.meta.dirname,
    include: ['*.test.ts'],
    globalSetup: '../test/global-setup.ts',
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
