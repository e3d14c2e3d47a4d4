import { expect, test } from '../lib/lab/page-test.ts'
import { bootTimeoutMs } from './boot-rows.ts'

test('the machines that discovered.spec.ts adopted, by a click and by a rule, have booted since', async ({ page }) => {
  await page.goto('/devices?search=02:bf:00:00:01')
  const rows = page.getByRole('table', { name: 'Devices' }).getByRole('row')
  for (const name of ['lab-001', 'reception'])
    await expect(rows.filter({ hasText: name }).getByText('Ready', { exact: true })).toBeVisible({
      timeout: bootTimeoutMs,
    })
})
