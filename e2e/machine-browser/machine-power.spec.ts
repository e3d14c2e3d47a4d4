import { expect, test } from '@playwright/test'
import { bootCount, bootTimeoutMs, keeperLog, newestBoot, openMachine, stateOf } from './machine-page.ts'

/** Its system needs a few seconds to shut down. */
const powerOffTimeoutMs = 180_000

test('a real machine is powered off and booted again', async ({ page }) => {
  test.setTimeout(3 * bootTimeoutMs)
  await openMachine(page)
  await expect(stateOf(page, 'Running')).toBeVisible({ timeout: bootTimeoutMs })
  // Its boots are fetched separately.
  await expect(newestBoot(page).getByRole('link').first()).toBeVisible()
  const boots = await bootCount(page)
  await page.getByRole('button', { name: 'Power off' }).click()
  await page.getByRole('button', { name: 'Power off machine-1' }).click()
  // The dashboard reports the shutdown when it begins, the emulator ends when it is done.
  await expect(stateOf(page, 'Off')).toBeVisible({ timeout: powerOffTimeoutMs })
  await expect.poll(keeperLog, { timeout: powerOffTimeoutMs }).toMatch(/is off: powered off$/m)

  await page.getByRole('button', { name: 'Wake (WoL)' }).click()
  await expect
    .poll(keeperLog, { timeout: powerOffTimeoutMs })
    .toMatch(/is off: powered off\n.*is woken by a magic packet/)
  await expect.poll(() => bootCount(page), { timeout: bootTimeoutMs }).toBe(boots + 1)
  await expect(stateOf(page, 'Running')).toBeVisible({ timeout: bootTimeoutMs })
})
