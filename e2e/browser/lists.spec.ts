import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootRows } from './boot-rows.ts'

test('a tile leads to the boots that it counts, and Back keeps a sorted list with all that was loaded', async ({
  page,
}) => {
  await page.goto('/')
  await page.getByRole('list', { name: 'Figures' }).getByRole('link', { name: /^Boot time \(p95/ }).click()
  await expect(page).toHaveURL(/\/boots\?outcome=ready&since=[^&]+&sort=-durationUs$/)
  const duration = page.getByRole('columnheader', { name: 'Duration' })
  await expect(duration).toHaveAttribute('aria-sort', 'descending')
  await expect(bootRows(page).first()).toContainText('Ready')

  await page.goto('/boots?origin=generated&sort=-durationUs')
  await expect(bootRows(page)).toHaveCount(50)
  const slowest = await bootRows(page).first().textContent()
  await page.getByRole('button', { name: 'Load more' }).click()
  await expect(bootRows(page)).toHaveCount(100)
  await bootRows(page).nth(90).getByRole('link').first().click()
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await page.goBack()
  await expect(bootRows(page)).toHaveCount(100)
  await page.getByRole('button', { name: 'Duration' }).click()
  await expect(page).toHaveURL('/boots?origin=generated&sort=durationUs')
  await expect(duration).toHaveAttribute('aria-sort', 'ascending')
  await expect(bootRows(page).first()).not.toHaveText(slowest ?? '')
})

test('bars state their scale and colours, and axe finds nothing in the open filters', async ({ page }) => {
  await page.goto('/boots?origin=generated')
  await expect(page.getByRole('columnheader', { name: /^Phases\s*0 to \d+/ })).toBeVisible()
  await expect(page.getByRole('list', { name: 'Phases' }).getByText('DHCP')).toBeVisible()
  await page.getByText('More filters').click()
  await expect(page.getByRole('combobox', { name: 'Cause' })).toBeVisible()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await seriousProblems(page)).toEqual([])
  }
  await page.setViewportSize({ width: 390, height: 844 })
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
})

test('the boots of a list are exported in its order', async ({ page }) => {
  await page.goto('/boots?origin=generated&sort=-durationUs')
  const waiting = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Export CSV' }).click()
  expect((await waiting).suggestedFilename()).toMatch(/^boots-\d{4}-\d\d-\d\d\.csv$/)
})
