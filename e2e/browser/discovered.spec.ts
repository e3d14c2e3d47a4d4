import { Tenant } from '../lib/control-plane/tenant.ts'
import { type Cookie, expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootTimeoutMs } from './boot-rows.ts'
import { signIn } from './demo-sign-in.ts'

/** Simulated devices of the demo that are not registered. */
const [byClick, byRule] = ['02:bf:00:00:01:01', '02:bf:00:00:01:02']
// They boot when they ask next, which takes a while; unknown-devices.spec.ts checks that at the end.

const machines = (page: Page) => page.getByRole('table', { name: 'Discovered devices' })
const row = (page: Page, mac: string) => machines(page).getByRole('row').filter({ hasText: mac })

test('an unknown machine is discovered and adopted with one click', async ({ page }) => {
  await page.goto('/discovered')
  await expect(row(page, byClick)).toContainText('x86 BIOS', { timeout: bootTimeoutMs })
  await page.getByRole('button', { name: `Adopt ${byClick}` }).click()
  const dialog = page.getByRole('dialog', { name: `Adopt ${byClick}` })
  const name = dialog.getByRole('textbox', { name: 'Name' })
  await expect(name).toHaveValue('02-bf-00-00-01-01')
  expect(await seriousProblems(page)).toEqual([])
  await name.fill('demo-01')
  await dialog.getByRole('button', { name: 'Adopt' }).click()
  await expect(dialog.getByRole('alert')).toHaveText('This site already has a device named demo-01.')
  await name.fill('reception')
  await dialog.getByLabel('Collection in Demo site').selectOption('Lab (boots Demo Linux)')
  await dialog.getByRole('button', { name: 'Adopt' }).click()
  await expect(page.getByText('reception adopted.', { exact: true })).toBeVisible()
  await expect(row(page, byClick)).toHaveCount(0)
})

test('a rule previews its effect on waiting machines, and adopts them', async ({ page }) => {
  await page.goto('/discovered/rules')
  await page.getByRole('button', { name: 'Add rule' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('MAC address begins with').fill(byRule.toUpperCase().replaceAll(':', '-'))
  await dialog.getByLabel('Relay agent network').fill('10.1.2.3/8')
  await dialog.getByRole('textbox', { name: 'Name pattern' }).fill('lab-{nnn}')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(dialog.getByRole('alert')).toContainText('Use 10.0.0.0/8.')
  await dialog.getByLabel('Relay agent network').fill('')
  await dialog.getByRole('button', { name: 'Save' }).click()
  const rules = page.getByRole('list', { name: 'Rules in order' })
  await expect(rules).toContainText(`When MAC address begins with ${byRule}`)
  await page.getByRole('button', { name: 'Apply to waiting machines' }).click()
  const preview = dialog.getByRole('row').filter({ hasText: byRule })
  await expect(preview).toContainText('adopt as lab-001')
  await dialog.getByRole('button', { name: 'Apply to 1 machine' }).click()
  await expect(page.getByText('1 machine adopted, 0 ignored.', { exact: true })).toBeVisible()
  await page.getByRole('button', { name: 'Delete rule 1' }).click()
  await expect(page.getByText('No rules yet.')).toBeVisible()
})

test.describe('in its own organization', () => {
  test.use({ storageState: { cookies: [], origins: [] } })
  const mac = '52:54:00:00:00:01'
  const hostile = '<img src=x onerror=document.title=1>'
  let tenant: Tenant
  let cookies: Cookie[]

  test.beforeAll(async ({ browser }) => {
    tenant = await Tenant.create()
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto('/sign-in')
    await signIn(page, tenant.person)
    await expect(page.getByRole('heading', { name: 'Booting now' })).toBeVisible()
    cookies = await context.cookies()
    await context.close()
  })

  test('a machine appears on the open page with its text unformatted, is ignored, and is taken back', async ({
    page,
  }) => {
    await page.context().addCookies(cookies)
    await page.goto('/discovered')
    await expect(page.getByText('No unregistered machines.')).toBeVisible()
    const now = Date.now()
    await tenant.discover({
      mac,
      vendorClass: hostile,
      hostName: hostile,
      asked: 'http',
      requests: 3,
      relay: '10.20.0.1',
      firstSeenUnixMs: now,
      lastSeenUnixMs: now,
    })
    await expect(row(page, mac)).toContainText(hostile)
    await expect(row(page, mac)).toContainText('via relay 10.20.0.1')
    await page.getByRole('checkbox', { name: `Select ${mac}` }).check()
    await page.getByRole('button', { name: 'Ignore' }).click()
    await expect(page.getByText('No unregistered machines.')).toBeVisible()
    await page.getByRole('combobox', { name: 'State' }).selectOption('Ignored')
    await expect(page).toHaveURL('/discovered?state=ignored')
    await page.getByRole('checkbox', { name: `Select ${mac}` }).check()
    await page.getByRole('button', { name: 'Stop ignoring' }).click()
    await expect(page.getByText('No machines match these filters.')).toBeVisible()
    await page.getByRole('button', { name: 'Clear' }).click()
    await expect(row(page, mac)).toBeVisible()
  })
})
