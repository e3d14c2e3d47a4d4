import { defineConfig } from 'vitest/config'

const include = ['src/**/*.test.ts', 'test/**/*.test.ts']
/**
 * Far more than any needs, also on a busy machine: beside 30 programs one set-up took more than 30 s. No claim depends
 * on them; they end what hangs.
 */
const limits = {
  testTimeout: 600_000,
  hookTimeout: 600_000,
  teardownTimeout: 120_000,
  expect: { poll: { timeout: 120_000 } },
}
/** No module keeps anything between files: a worker loads each one once. */
const isolate = false

/** `npx vitest run` at the root: everything in TypeScript that needs no edge and no browser. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'proto', root: 'packages/proto', include, isolate, ...limits } },
      {
        test: {
          name: 'db',
          root: 'packages/db',
          include,
          isolate,
          globalSetup: 'test/global-setup.ts',
          ...limits,
        },
      },
      {
        test: {
          name: 'api',
          root: 'apps/api',
          include,
          isolate,
          globalSetup: '../../packages/db/test/global-setup.ts',
          ...limits,
        },
      },
      { test: { name: 'soak', root: 'e2e/soak', include: ['**/*.test.ts'], isolate, ...limits } },
      { test: { name: 'web', root: 'apps/web', include, isolate, ...limits } },
    ],
  },
})
