import { defineConfig } from 'vitest/config'

/** A separate layer (scripts/test/layers.mjs): migrating from each earlier state takes too long for every change. */
export default defineConfig({
  test: {
    name: 'db-long',
    root: import.meta.dirname,
    include: ['*.test.ts', '../test/migrate-under-load.test.ts'],
    env: { BOOTFARM_EVERY_STATE: '1' },
    globalSetup: '../test/global-setup.ts',
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})
