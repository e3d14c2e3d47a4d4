import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, type Page, test } from '@playwright/test'

/** An emulated machine on two cores takes half a minute to start a whole system, and some seconds to end it. */
const bootTimeoutMs = 180_000
const powerOffTimeoutMs = 60_000

test('a real machine boots, shows its own steps and its console, is powered off and booted again', async ({
  page,
}) => {
  test.setTimeout(3 * bootTimeoutMs)
  await openMachine(page)
  await expect(stateOf(page, 'Running')).toBeVisible({ timeout: bootTimeoutMs })
  expect(keeperLog()).toMatch(/is switched on$/m)
  await newestBoot(page).getByRole('link').first().click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Boot of machine-1')

  const waterfall = page.getByRole('img', { name: /^Waterfall of/ })
  for (const phase of ['DHCP', 'Loader', 'Breather', 'Stage 2', 'Ready'])
    await expect(waterfall).toHaveAccessibleName(new RegExp(`${phase} \\d`))
  const steps = page.getByRole('table', { name: 'Steps of the device' })
  for (const group of ['kernel', 'initramfs', 'system'])
    await expect(steps.getByRole('row', { name: new RegExp(group, 'i') }).first()).toBeVisible()
  const console = page.getByRole('region', { name: 'Lines of the serial console' })
  for (const line of [
    /iPXE.*Open Source Network Boot Firmware/,
    /boot\.ipxe/,
    /bootfarm: root disk/,
    /login:/,
  ])
    await expect(console.getByText(line).first()).toBeAttached()
  await expect(page.getByText('simulated', { exact: true })).toHaveCount(0)

  await openMachine(page)
  const boots = await bootCount(page)
  await page.getByRole('button', { name: 'Power off' }).click()
  await page.getByRole('button', { name: 'Power off machine-1' }).click()
  // The dashboard says so when the machine begins to, the emulator ends when it has.
  await expect(stateOf(page, 'Off')).toBeVisible({ timeout: powerOffTimeoutMs })
  await expect.poll(keeperLog, { timeout: powerOffTimeoutMs }).toMatch(/is off: powered off$/m)

  await page.getByRole('button', { name: 'Boot again' }).click()
  await expect
    .poll(keeperLog, { timeout: powerOffTimeoutMs })
    .toMatch(/is off: powered off\n.*is woken by a magic packet/)
  await expect.poll(() => bootCount(page), { timeout: bootTimeoutMs }).toBe(boots + 1)
  await expect(stateOf(page, 'Running')).toBeVisible({ timeout: bootTimeoutMs })
})

async function openMachine(page: Page): Promise<void> {
  await page.goto('/devices')
  await page.getByRole('link', { name: 'machine-1' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('machine-1')
}

const stateOf = (page: Page, word: string) => page.getByRole('main').getByText(word, { exact: true }).first()

const boots = (page: Page) => page.getByRole('region', { name: 'Boots of this device' })
const newestBoot = (page: Page) => boots(page).getByRole('row').nth(1)
const bootCount = (page: Page) =>
  boots(page)
    .getByRole('row')
    .filter({ has: page.getByRole('link') })
    .count()

/** What the one who keeps the machine saw of it: when its emulator began and ended. */
const keeperLog = () => readFileSync(path.join(process.env.BOOTFARM_DATA ?? '', 'logs/machines.log'), 'utf8')
