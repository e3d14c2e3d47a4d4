import { defineConfig } from 'vitest/config'

const include = ['src/**/*.test.ts', 'test/**/*.test.ts']
/** Far more than any needs: beside 30 busy programs the set-up of auth/oidc.test.ts took more than 30 s. */
const limitMs = 120_000

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
          testTimeout: limitMs,
          hookTimeout: limitMs,
        },
      },
      {
        test: {
          name: 'api',
          root: 'apps/api',
          include,
          globalSetup: '../../packages/db/test/global-setup.ts',
          testTimeout: limitMs,
          hookTimeout: limitMs,
        },
      },
      { test: { name: 'web', root: 'apps/web', include } },
    ],
  },
})
