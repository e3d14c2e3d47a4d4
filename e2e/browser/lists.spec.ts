import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootRows } from './boot-rows.ts'

test('a tile leads to the boots that it counts, and Back keeps a sorted list with all that was loaded', async ({
  page,
}) => {
  await page.goto('/')
  await page
    .getByRole('list', { name: 'Figures' })
    .getByRole('link', { name: /^Boot time \(p95/ })
    .click()
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
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Boot of')
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

test('a date, a search and an edge filter the boots, and a reload keeps them', async ({ page }) => {
  await page.goto('/boots?origin=generated')
  await page.getByText('More filters').click()
  await page.getByLabel('Until', { exact: true }).fill('2020-11-01T00:00')
  await expect(page).toHaveURL(/[?&]until=2020-1/)
  await expect(page.getByText('No boots match these filters.')).toBeVisible()
  await page.reload()
  await expect(page.getByLabel('Until', { exact: true })).toHaveValue('2020-11-01T00:00')
  await page.getByLabel('Until', { exact: true }).fill('')
  await page.getByRole('searchbox', { name: 'Search name or MAC' }).fill('demo-03')
  // Typing counts after a pause: the edge chosen meanwhile would come first in the address.
  await expect(page).toHaveURL(/[?&]search=demo-03$/)
  await page.getByRole('combobox', { name: 'Edge', exact: true }).selectOption({ index: 1 })
  await expect(page).toHaveURL(/^[^?]*\?origin=generated&search=demo-03&edge=[0-9a-f-]{36}$/)
  await expect(bootRows(page).filter({ hasNotText: 'demo-03' })).toHaveCount(0)
  await expect(bootRows(page).first()).toContainText('demo-03')
})

test('the scope of the overview is in its address, and its lists keep it', async ({ page }) => {
  await page.goto('/')
  const figures = page.getByRole('list', { name: 'Figures' })
  await expect(figures.getByRole('link', { name: /^Booting now/ })).toHaveAttribute('href', '/boots?outcome=booting')
  const { items } = await (await page.request.get('/api/v1/farms?limit=1')).json()
  const [{ id, name }] = items as [{ id: string; name: string }]
  await page.goto(`/?farm=${id}`)
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(name)
  for (const [label, href] of [
    [/^Booting now/, `/boots?outcome=booting&farm=${id}`],
    [/^Edges online/, `/edges?state=online&farm=${id}`],
  ] as const)
    await expect(figures.getByRole('link', { name: label })).toHaveAttribute('href', href)
  await figures.getByRole('link', { name: /^Edges online/ }).click()
  await expect(page.getByRole('combobox', { name: 'Farm' })).toHaveValue(id)
  await expect(page.getByRole('table', { name: 'Edges' }).getByText('Online', { exact: true })).toBeVisible()
  await page.goto('/?farm=00000000-0000-4000-8000-000000000000')
  await expect(page.getByRole('alert').getByText('Could not load the overview.')).toBeVisible()
})
