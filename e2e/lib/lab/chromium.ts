import { existsSync } from 'node:fs'
import { type Browser, chromium } from '@playwright/test'

/** Finds a Chromium: the named one, Playwright's own, the system's, else the headless one from npm. */
export async function chromiumProgram(): Promise<string> {
  const candidates = [
    process.env.CHROMIUM_PATH,
    chromium.executablePath(),
    '/usr/bin/chromium',
    '/usr/bin/google-chrome',
  ]
  const found = candidates.find((path) => path && existsSync(path))
  return found ?? (await import('@sparticuz/chromium')).default.executablePath()
}

export const chromiumArgs = [
  // Chromium's own sandbox refuses to run as root.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export async function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: await chromiumProgram(), args: chromiumArgs })
}
