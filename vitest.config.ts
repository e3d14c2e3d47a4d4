import { defineConfig } from 'vitest/config'

const include = ['src/**/*.test.ts', 'test/**/*.test.ts']
/**
 * Far more than any needs: beside 30 busy programs the set-up of http/auth/provider-auth.test.ts took more than 30 s.
 */
const limitMs = 120_000
/** No module keeps anything between files: a worker loads each one once. */
const isolate = false

/** `npx vitest run` at the root: everything in TypeScript that needs no edge and no browser. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'proto', root: 'packages/proto', include, isolate } },
      {
        test: {
          name: 'db',
          root: 'packages/db',
          include,
          isolate,
          globalSetup: 'test/global-setup.ts',
          testTimeout: limitMs,
          hookTimeout: limitMs,
        },
      },
      {
        test: {
          name: 'api',
          root: 'apps/api',
          include,
          isolate,
          globalSetup: '../../packages/db/test/global-setup.ts',
          testTimeout: limitMs,
          hookTimeout: limitMs,
        },
      },
      { test: { name: 'soak', root: 'e2e/soak', include: ['**/*.test.ts'], isolate } },
      { test: { name: 'web', root: 'apps/web', include, isolate } },
    ],
  },
})
