import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootRows, bootTimeoutMs } from './boot-rows.ts'

const desktop = { width: 1280, height: 800 }

interface Places {
  /** Lists, each of which leads to a detail page. */
  lists: string[]
  /** Lists without detail pages. */
  others: string[]
}
const ofMachines: Places = {
  lists: ['/', '/devices', '/boots', '/vdisks', '/edges', '/sites'],
  others: [
    '/farms',
    '/alerts',
    '/storm',
    '/network',
    '/findings',
    '/explore',
    '/explore/compare',
    '/trash',
    '/discovered',
    '/discovered/rules',
    '/schedules',
    '/schedules/new',
    '/lab',
    '/lab/new',
  ],
}
const ofPeople: Places = { lists: ['/members'], others: ['/audit', '/roles', '/account'] }

/** Opens each list and its first detail page, and calls `check` once the page shows its rows. */
async function onEachPage(
  page: Page,
  { lists, others }: Places,
  check: (path: string) => Promise<void>,
): Promise<void> {
  for (const path of [...lists, ...others]) {
    await page.goto(path)
    await settled(page)
    await check(path)
    if (path === '/' || others.includes(path)) continue
    const href = await page.getByRole('table').first().getByRole('link').first().getAttribute('href')
    await page.goto(href ?? '')
    await settled(page)
    await check(href ?? '')
  }
}

/** The page has its heading and has finished loading. */
async function settled(page: Page): Promise<void> {
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expect(page.getByRole('status', { name: /^Loading/ })).toHaveCount(0)
}

/**
 * Runs axe on the open page in both colour schemes, which differ only in colours (CSS `light-dark`), and checks that
 * the page fits a phone. One visit serves all three: reloading gives the same page.
 */
async function checkPage(page: Page, name: string): Promise<void> {
  expect.soft(await seriousProblems(page), `${name}, light`).toEqual([])
  await page.emulateMedia({ colorScheme: 'dark' })
  expect.soft(await seriousProblems(page, 'colours'), `${name}, dark`).toEqual([])
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 390, height: 844 })
  const width = await page.evaluate(() => document.documentElement.scrollWidth)
  expect.soft(width, `width of ${name}`).toBeLessThanOrEqual(390)
  await page.setViewportSize(desktop)
}

test.describe('axe finds nothing serious, and nothing scrolls sideways at 390 px', () => {
  test.use({ colorScheme: 'light', viewport: desktop, contextOptions: { reducedMotion: 'reduce' } })

  test('on pages about machines', async ({ page }) => {
    // Each page is checked twice.
    test.slow()
    await page.goto('/boots')
    await expect(bootRows(page).first()).toBeVisible({ timeout: bootTimeoutMs })
    await onEachPage(page, ofMachines, (path) => checkPage(page, path))
  })

  test('on pages about people', async ({ page }) => {
    await onEachPage(page, ofPeople, (path) => checkPage(page, path))
  })

  test('on the sign-in page', async ({ browser }) => {
    const context = await browser.newContext({
      colorScheme: 'light',
      storageState: { cookies: [], origins: [] },
    })
    const page = await context.newPage()
    await page.goto('/sign-in')
    await page.getByLabel('E-mail').fill('nobody@bootfarm.test')
    await page.getByLabel('Password').fill('wrong-password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect(page.getByText('The e-mail address or password is incorrect.')).toBeVisible()
    await checkPage(page, '/sign-in')
    await context.close()
  })
})

test('at 390 px the navigation is a sheet', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto('/')
  await settled(page)
  await page.getByRole('button', { name: 'Open navigation' }).click()
  const sheet = page.getByRole('dialog')
  await expect(sheet).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await sheet.getByRole('link', { name: 'Devices' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Devices' })).toBeVisible()
  await expect(sheet).toHaveCount(0)
})
