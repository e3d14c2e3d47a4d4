import { expect, test } from '../lib/lab/page-test.ts'
import { bootRow, bootTimeoutMs, newestBoot } from './boot-rows.ts'

test('the overview shows farm, site and an edge that is online with its version', async ({ page }) => {
  await page.goto('/')
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  const sites = page.getByRole('region', { name: 'Sites and edges' })
  await expect(sites.getByText('Online', { exact: true })).toBeVisible()
  await expect(sites.getByText(/\d+\.\d+\.\d+ on (x86_64|aarch64)/)).toBeVisible()
  await expect(page.getByRole('list', { name: 'Figures' }).getByText('Edges online')).toBeVisible()
})

test('thirty days of history are shown and labelled as the demo’s', async ({ page }) => {
  await page.goto('/')
  const history = page.getByRole('region', { name: 'Boots of the last 30 days' })
  await expect(history.getByText('includes demo history')).toBeVisible()
  const days = history.getByRole('table', { name: 'Boots of the last 30 days' }).getByRole('row')
  await expect(days).toHaveCount(31)
})

test('six devices are listed, each labelled simulated once it has booted', async ({ page }) => {
  await page.goto('/devices')
  const rows = page.getByRole('table', { name: 'Devices' }).getByRole('row').filter({ hasText: '02:bf:00:00:00:0' })
  await expect(rows).toHaveCount(6)
  for (const row of await rows.all()) await expect(row.getByText('simulated')).toBeVisible({ timeout: bootTimeoutMs })
})

test('boots appear without a reload and end ready', async ({ page }) => {
  await page.goto('/boots?origin=simulated')
  await expect(page.getByRole('status').getByText('Live', { exact: true })).toBeVisible()
  const openedAt = await page.evaluate(() => performance.timeOrigin)
  const before = await newestBoot(page)
  await expect.poll(() => newestBoot(page), { timeout: bootTimeoutMs }).not.toBe(before)
  const row = bootRow(page, await newestBoot(page))
  await expect(row.getByText('Ready')).toBeVisible({ timeout: bootTimeoutMs })
  expect(await page.evaluate(() => performance.timeOrigin)).toBe(openedAt)
})
