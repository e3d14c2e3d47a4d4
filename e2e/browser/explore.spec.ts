import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootRows } from './boot-rows.ts'

const month = '/explore?origin=generated&period=30d'

test('a box over the heat map is compared with the rest, lives in the URL, and opens its boots', async ({ page }) => {
  await page.goto(month)
  const map = page.getByRole('slider', { name: 'Boots by start and duration' })
  await expect(map).toBeVisible()
  const area = await map.boundingBox()
  if (!area) throw new Error('the heat map has no size')
  await page.mouse.move(area.x + 2, area.y + 2)
  await page.mouse.down()
  await page.mouse.move(area.x + area.width - 2, area.y + area.height / 2, { steps: 4 })
  await page.mouse.up()
  await expect(page).toHaveURL(/box=\d+-\d+-\d+-/)
  const panel = page.getByRole('region', { name: 'What these boots have more often' }).first()
  await expect(panel.getByText(/compared with [\d,]+ others/)).toBeVisible()
  const count = Number(/· (\d+) boots?,/.exec((await panel.textContent()) ?? '')?.[1])
  expect(count).toBeGreaterThan(0)
  await page.reload()
  await expect(panel.getByText(/compared with/)).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await panel.getByRole('link', { name: 'View these boots' }).click()
  await expect(page).toHaveURL(/\/boots\?.*durationMin=/)
  await expect(bootRows(page)).toHaveCount(Math.min(50, count))
})

test('the keyboard chooses a box, and Escape clears it', async ({ page }) => {
  await page.goto(month)
  const map = page.getByRole('slider', { name: 'Boots by start and duration' })
  await map.focus()
  await map.press('Home')
  for (const key of ['Shift+End', 'Shift+PageUp', 'Enter']) await map.press(key)
  await expect(page).toHaveURL(/box=/)
  await map.press('Escape')
  await expect(page).not.toHaveURL(/box=/)
})

test('groups and the table have the numbers of the charts, and each leads to its boots', async ({ page }) => {
  await page.goto(`${month}&by=outcome`)
  const groups = page.getByRole('table', { name: 'Boots by outcome' })
  const ready = groups.getByRole('row').filter({ hasText: 'Ready' })
  const count = Number((await ready.getByRole('cell').first().textContent())?.replaceAll(',', ''))
  await ready.getByRole('link').first().click()
  await expect(page).toHaveURL(/outcome=ready/)
  await expect(bootRows(page)).toHaveCount(Math.min(50, count))
  await page.goBack()
  await page.getByRole('button', { name: 'Table', exact: true }).first().click()
  await expect(page.getByRole('table', { name: 'Boots by start and duration, as a table' })).toBeVisible()
})

test('two sets of boots are compared phase by phase, and can be swapped', async ({ page }) => {
  await page.goto('/explore/compare?origin=generated&period=30d&base-origin=simulated')
  const phases = page.getByRole('table', { name: 'Phases of both sets' })
  await expect(phases.getByRole('row').filter({ hasText: 'Whole boot' })).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await page.getByRole('link', { name: 'Swap' }).click()
  await expect(page).toHaveURL(/base-origin=generated/)
  await page.getByRole('button', { name: 'Table', exact: true }).click()
  await expect(page.getByRole('table', { name: 'Durations of ready boots, as a table' })).toBeVisible()
})

test('a view is saved by a name, opens again, and is deleted', async ({ page }) => {
  await page.goto('/explore?by=edge&period=30d')
  await page.getByRole('button', { name: 'Save view' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Edges of a month')
  await page.getByRole('dialog').getByRole('button', { name: 'Save view' }).click()
  const views = page.getByRole('combobox', { name: 'Saved view' })
  await expect(views).toHaveValue('Edges of a month')
  await page.goto('/explore/compare')
  await views.selectOption('Edges of a month')
  await expect(page).toHaveURL('/explore?by=edge&period=30d')
  await page.getByRole('button', { name: 'Delete view' }).click()
  await expect(views).toHaveCount(0)
})
