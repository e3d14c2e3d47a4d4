import { defineConfig } from '@playwright/test'
import { chromiumArgs, chromiumProgram } from './lib/lab/chromium.ts'

/** Two runs side by side, each with its own product, session and results. */
const results = `test-results/${process.env.BOOTFARM_BROWSER_RUN ?? 'browser'}`
const session = `${results}/session.json`

/** Runs against a running product: BOOTFARM_WEB_URL, BOOTFARM_DEMO_EMAIL and BOOTFARM_DEMO_PASSWORD name it. */
export default defineConfig({
  outputDir: results,
  reporter: 'list',
  // They end what hangs: a page, a simulated boot, the next wave of them take seconds on a quiet machine, and several
  // times as long on a busy one.
  timeout: 600_000,
  expect: { timeout: 60_000 },
  retries: 0,
  workers: 1,
  use: {
    baseURL: process.env.BOOTFARM_WEB_URL ?? 'http://localhost:3000',
    viewport: { width: 1280, height: 800 },
    screenshot: 'only-on-failure',
    // Without a graphics card, a pulsing dot repaints the whole page 60 times a second for as long as a boot runs.
    contextOptions: { reducedMotion: 'reduce' },
    launchOptions: {
      executablePath: await chromiumProgram(),
      args: chromiumArgs,
    },
  },
  projects: [
    { name: 'sign in', testDir: 'browser', testMatch: 'session.setup.ts' },
    {
      name: 'dashboard',
      testDir: 'browser',
      testMatch: '*.spec.ts',
      dependencies: ['sign in'],
      use: { storageState: session },
    },
    // Runs beside a real edge with a real store; signs in by itself.
    { name: 'store-browser', testDir: 'store-browser', testMatch: '*.spec.ts' },
    // Runs against `npm start -- --machine`.
    ...['machine-boot', 'machine-power'].map((name) => ({
      name,
      testDir: 'machine-browser',
      testMatch: `${name}.spec.ts`,
      dependencies: ['sign in'],
      use: { storageState: session },
    })),
  ],
})
