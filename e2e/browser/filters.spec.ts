import { expect, test } from '../lib/lab/page-test.ts'
import { bootRows } from './boot-rows.ts'

test('filters live in the URL and survive a reload', async ({ page }) => {
  await page.goto('/boots')
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('Ready')
  await page.getByRole('combobox', { name: 'Origin' }).selectOption('Demo history')
  await page.getByRole('combobox', { name: 'Period' }).selectOption('Last 30 days')
  await expect(page).toHaveURL('/boots?outcome=ready&origin=generated&period=30d')
  await expect(bootRows(page).first()).toContainText('demo history')
  await page.reload()
  await expect(page.getByRole('combobox', { name: 'Outcome' })).toHaveValue('ready')
  await expect(page.getByRole('combobox', { name: 'Origin' })).toHaveValue('generated')
  await expect(bootRows(page).first()).toContainText('demo history')
  await page.getByRole('button', { name: 'Clear' }).click()
  await expect(page).toHaveURL('/boots')
})

test('boots can be filtered by device', async ({ page }) => {
  await page.goto('/boots')
  const device = page.getByRole('combobox', { name: 'Device' })
  const name = await device.getByRole('option').nth(2).textContent()
  if (!name) throw new Error('the second device has no name')
  await device.selectOption(name)
  await expect(page).toHaveURL(/device=[0-9a-f-]{36}/)
  await expect(bootRows(page).filter({ hasNotText: name })).toHaveCount(0)
  await expect(bootRows(page).first()).toContainText(name)
})

test('devices are found by part of their MAC address', async ({ page }) => {
  await page.goto('/devices')
  const rows = page.getByRole('table', { name: 'Devices' }).getByRole('rowheader')
  await expect.poll(() => rows.count()).toBeGreaterThanOrEqual(6)
  await page.getByRole('searchbox', { name: 'Search name or MAC' }).fill('00:03')
  await expect(rows).toHaveCount(1)
  await expect(page).toHaveURL('/devices?search=00%3A03')
  await page.reload()
  await expect(page.getByRole('searchbox')).toHaveValue('00:03')
  await expect(rows).toHaveCount(1)
})

test('“Load more” adds the next page below the first', async ({ page }) => {
  await page.goto('/boots?origin=generated')
  await expect(bootRows(page)).toHaveCount(50)
  await page.getByRole('button', { name: 'Load more' }).click()
  await expect(bootRows(page)).toHaveCount(100)
})

test('an unknown filter counts as not set', async ({ page }) => {
  await page.goto('/boots?outcome=exploded')
  await expect(page.getByRole('combobox', { name: 'Outcome' })).toHaveValue('')
  await expect(bootRows(page).first()).toBeVisible()
})
