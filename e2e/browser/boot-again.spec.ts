import { expect, test } from '../lib/lab/page-test.ts'
import { bootTimeoutMs } from './boot-rows.ts'

test('Wake starts a new boot of the device that ends ready', async ({ page }) => {
  await page.goto('/devices')
  await page.getByRole('link', { name: /-01$/ }).click()
  const boots = page.getByRole('region', { name: 'Boots of this device' })
  const newest = boots.getByRole('row').nth(1)
  // A device in the middle of a boot continues it.
  await expect(newest.getByText('Ready', { exact: true })).toBeVisible({ timeout: bootTimeoutMs })
  const before = await newest.getByRole('link').getAttribute('href')
  await page.getByRole('button', { name: 'Wake (WoL)' }).click()
  const watch = page.getByRole('link', { name: 'View this boot' })
  // The device stops waiting before this check if its first packet was faster.
  const waiting = page.getByRole('button', { name: 'Waiting for the first packet' })
  await expect(waiting.or(watch).first()).toBeVisible()
  await expect(watch).toBeVisible({ timeout: bootTimeoutMs })
  expect(await watch.getAttribute('href')).not.toBe(before)
  await watch.click()
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Boot of')
  await expect(page.getByRole('img', { name: /Ready \d/ })).toBeVisible({ timeout: bootTimeoutMs })
})
