import { expect, test } from '@playwright/test'
import { bootTimeoutMs, keeperLog, newestBoot, openMachine, stateOf } from './machine-page.ts'

test('a real machine boots, shows its own steps and its console', async ({ page }) => {
  test.setTimeout(2 * bootTimeoutMs)
  await openMachine(page)
  await expect(stateOf(page, 'Running')).toBeVisible({ timeout: bootTimeoutMs })
  expect(keeperLog()).toMatch(/is switched on$/m)
  await newestBoot(page).getByRole('link').first().click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Boot of machine-1')

  const waterfall = page.getByRole('img', { name: /^Waterfall of/ })
  for (const phase of ['DHCP', 'Kernel and initramfs download', 'Kernel start', 'OS disk streaming', 'Ready'])
    await expect(waterfall).toHaveAccessibleName(new RegExp(`${phase} \\d`))
  const steps = page.getByRole('table', { name: 'OS boot steps' })
  // The system's own steps come after the boot is ready: the machine asks systemd for them, which takes a slow one a
  // while.
  for (const group of ['kernel', 'initramfs', 'system'])
    await expect(steps.getByRole('row', { name: new RegExp(group, 'i') }).first()).toBeVisible({
      timeout: bootTimeoutMs,
    })
  const console = page.getByRole('region', { name: 'Serial console output' })
  // The prompt appears after the boot is ready, as soon as a busy computer lets the machine get there.
  const link = new RegExp(`bootfarm: this boot: http.*/b/${linkIdOf(page.url())}`)
  for (const line of [/iPXE.*Open Source Network Boot Firmware/, /boot\.ipxe/, link, /bootfarm: root disk/, /login:/])
    await expect(console.getByText(line).first()).toBeAttached({ timeout: bootTimeoutMs })
  await expect(page.getByText('simulated', { exact: true })).toHaveCount(0)
})

/** What the machine prints: the first half of its boot's id. */
function linkIdOf(url: string): string {
  return (new URL(url).pathname.split('/').at(-1) ?? '').replaceAll('-', '').slice(0, 12)
}
