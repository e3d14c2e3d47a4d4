import { defineConfig } from 'vitest/config'

/** A separate layer (scripts/test/layers.mjs): it needs a program that takes minutes to build. */
export default defineConfig({
  test: {
    name: 'api-long',
    root: import.meta.dirname,
    include: ['*.test.ts'],
    globalSetup: '../../../packages/db/test/global-setup.ts',
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
