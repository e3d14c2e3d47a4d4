import { existsSync } from 'node:fs'
import { chromium, defineConfig } from '@playwright/test'

/** Finds a Chromium: the named one, Playwright's own, the system's, else the headless one from npm. */
async function browserProgram(): Promise<string> {
  const candidates = [
    process.env.CHROMIUM_PATH,
    chromium.executablePath(),
    '/usr/bin/chromium',
    '/usr/bin/google-chrome',
  ]
  const found = candidates.find((path) => path && existsSync(path))
  return found ?? (await import('@sparticuz/chromium')).default.executablePath()
}

/** Two runs side by side, each with its own product, session and results. */
const results = `test-results/${process.env.BOOTFARM_BROWSER_RUN ?? 'browser'}`
const session = `${results}/session.json`

/** Runs against a running product: BOOTFARM_WEB_URL, BOOTFARM_DEMO_EMAIL and BOOTFARM_DEMO_PASSWORD name it. */
export default defineConfig({
  outputDir: results,
  reporter: 'list',
  // A simulated boot takes seconds, and a test may have to wait for the next wave of them.
  timeout: 90_000,
  expect: { timeout: 10_000 },
  retries: 0,
  workers: 1,
  use: {
    baseURL: process.env.BOOTFARM_WEB_URL ?? 'http://localhost:3000',
    viewport: { width: 1280, height: 800 },
    screenshot: 'only-on-failure',
    // Without a graphics card, a pulsing dot repaints the whole page 60 times a second for as long as a boot runs.
    contextOptions: { reducedMotion: 'reduce' },
    launchOptions: {
      executablePath: await browserProgram(),
      args: [
        // Chromium's own sandbox refuses to run as root.
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
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
