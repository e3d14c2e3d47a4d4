import { defineConfig } from 'vitest/config'

const include = ['src/**/*.test.ts', 'test/**/*.test.ts']

/** `npx vitest run` at the root: everything in TypeScript that needs no edge and no browser. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'proto', root: 'packages/proto', include } },
      {
        test: {
          name: 'db',
          root: 'packages/db',
          include,
          globalSetup: 'test/global-setup.ts',
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'api',
          root: 'apps/api',
          include,
          globalSetup: '../../packages/db/test/global-setup.ts',
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      { test: { name: 'web', root: 'apps/web', include } },
    ],
  },
})
