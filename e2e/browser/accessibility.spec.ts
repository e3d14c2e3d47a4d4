import { expect, type Page, test } from '@playwright/test'
import { seriousProblems } from './axe.ts'
import { bootRows, bootTimeoutMs } from './boot-rows.ts'

interface Places {
  /** Each with the first thing behind it. */
  lists: string[]
  /** Without pages of one thing behind them. */
  others: string[]
}
const ofMachines: Places = {
  lists: ['/', '/devices', '/boots', '/vdisks', '/edges', '/sites'],
  others: ['/farms', '/trash', '/discovered', '/discovered/rules', '/schedules', '/schedules/new'],
}
const ofPeople: Places = { lists: ['/members'], others: ['/audit', '/roles', '/account'] }

/** Opens each list and the first thing of each, and calls `check` when the page is there with its rows. */
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

/** Headed, and nothing loading any more. */
async function settled(page: Page): Promise<void> {
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expect(page.getByRole('status', { name: /^Loading/ })).toHaveCount(0)
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing serious on pages about machines, ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto('/boots')
    await expect(bootRows(page).first()).toBeVisible({ timeout: bootTimeoutMs })
    await onEachPage(page, ofMachines, async (path) => {
      expect.soft(await seriousProblems(page), path).toEqual([])
    })
  })

  test(`axe finds nothing serious on pages about people, ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await onEachPage(page, ofPeople, async (path) => {
      expect.soft(await seriousProblems(page), path).toEqual([])
    })
  })

  test(`axe finds nothing serious on the sign-in page, ${colorScheme}`, async ({ browser }) => {
    const context = await browser.newContext({ colorScheme, storageState: { cookies: [], origins: [] } })
    const page = await context.newPage()
    await page.goto('/sign-in')
    await page.getByLabel('E-mail').fill('nobody@bootfarm.test')
    await page.getByLabel('Password').fill('wrong-password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect(page.getByText('E-mail or password is wrong.')).toBeVisible()
    expect(await seriousProblems(page)).toEqual([])
    await context.close()
  })
}

test('at 390 px no page scrolls sideways, and the navigation is a sheet', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  const all = {
    lists: [...ofMachines.lists, ...ofPeople.lists],
    others: [...ofMachines.others, ...ofPeople.others],
  }
  await onEachPage(page, all, async (path) => {
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    expect.soft(width, `${path} is ${width} px wide`).toBeLessThanOrEqual(390)
  })
  await page.getByRole('button', { name: 'Open navigation' }).click()
  const sheet = page.getByRole('dialog')
  await expect(sheet).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await sheet.getByRole('link', { name: 'Devices' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Devices' })).toBeVisible()
  await expect(sheet).toHaveCount(0)
})
