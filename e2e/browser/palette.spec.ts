import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] }, contextOptions: { reducedMotion: 'reduce' } })

const palette = (page: Page) => page.getByRole('dialog', { name: 'Search and go to' })

test('the palette finds by name and address, opens with the keyboard, remembers, and is the same on a phone', async ({
  page,
}) => {
  const tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
  const [first = '', second = ''] = tenant.rows.macs
  await page.keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: 'Search and go to' })
  await expect(field).toBeFocused()
  await field.fill('pc-01')
  const devices = palette(page).getByRole('group', { name: 'Devices' })
  await expect(devices.getByRole('option')).toHaveText(/pc-01/)
  await expect(palette(page).getByRole('status')).toHaveText(/1 result/)
  await expect(devices.getByRole('option')).toHaveAttribute('aria-selected', 'true')
  // Screen readers hear the option that the field points at.
  const id = await devices.getByRole('option').getAttribute('id')
  await expect(field).toHaveAttribute('aria-activedescendant', id ?? 'none')
  expect.soft(await seriousProblems(page)).toEqual([])
  await page.emulateMedia({ colorScheme: 'dark' })
  expect.soft(await seriousProblems(page, 'colours')).toEqual([])
  await page.emulateMedia({ colorScheme: 'light' })
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'pc-01' })).toBeVisible()
  await expect(palette(page)).toHaveCount(0)

  // A slash does the same outside of fields; the device is a recent page now.
  await page.keyboard.press('/')
  await expect(
    palette(page).getByRole('group', { name: 'Recent' }).getByRole('option', { name: 'pc-01' }),
  ).toBeVisible()
  await field.fill(second.toUpperCase().replaceAll(':', '-'))
  await expect(devices.getByRole('option')).toContainText(`MAC ${second}`)
  await field.fill('audit')
  await expect(palette(page).getByRole('option', { name: 'Audit log' })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(palette(page)).toHaveCount(0)

  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'Search', exact: true }).click()
  await field.fill(first)
  await expect(devices.getByRole('option')).toHaveCount(1)
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
  await devices.getByRole('option').click()
  await expect(page.getByRole('heading', { level: 1, name: 'pc-01' })).toBeVisible()
})

test('shortcuts open places, are listed, and can be turned off', async ({ page }) => {
  const tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
  const navigation = page.getByRole('navigation', { name: 'Main' })
  await expect(navigation.getByRole('list', { name: 'Infrastructure' }).getByRole('link')).toHaveText([
    'Farms',
    'Sites',
    'Edges',
    'Network',
  ])
  // The focus comes back to where it was.
  const sites = navigation.getByRole('link', { name: 'Sites' })
  await sites.focus()
  await page.keyboard.press('Control+k')
  await expect(palette(page)).toBeVisible()
  await page.keyboard.press('Control+k')
  await expect(sites).toBeFocused()
  await page.keyboard.press('g')
  await page.keyboard.press('d')
  await expect(page).toHaveURL(/\/devices$/)
  await page.keyboard.press('?')
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await expect(help.getByText('Audit log')).toBeVisible()
  expect.soft(await seriousProblems(page)).toEqual([])
  await help.getByRole('checkbox').uncheck()
  await help.getByRole('button', { name: 'Close' }).click()
  await page.keyboard.press('?')
  await page.keyboard.press('Control+k')
  await expect(palette(page)).toBeVisible()
  await expect(help).toHaveCount(0)
})

test('a row opens what its name links to, but for its own controls and selected text', async ({ page }) => {
  const tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
  await page.goto('/devices')
  const row = page.getByRole('row').filter({ hasText: 'pc-01' })
  const mac = row.getByText(tenant.rows.macs[0] ?? '')
  await row.getByRole('checkbox').check()
  const box = await mac.boundingBox()
  if (!box) throw new Error('The MAC address is not visible.')
  const middle = box.y + box.height / 2
  await page.mouse.move(box.x + 2, middle)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width - 2, middle)
  await page.mouse.up()
  expect(await page.evaluate(() => window.getSelection()?.toString())).toContain(':')
  await expect(page).toHaveURL(/\/devices$/)
  await row.getByRole('cell').filter({ hasText: 'never' }).first().click()
  await expect(page.getByRole('heading', { level: 1, name: 'pc-01' })).toBeVisible()
})
