import { type Cookie, expect, type Page, test } from '@playwright/test'
import { Tenant } from '../lib/tenant.ts'
import { signIn } from './demo-sign-in.ts'

const machines = (page: Page) => page.getByRole('table', { name: 'Discovered devices' })
const row = (page: Page, mac: string) => machines(page).getByRole('row').filter({ hasText: mac })

test.describe('of an organization of its own', () => {
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

  test('a machine comes onto the open page with its words as plain text, is ignored, and taken back', async ({
    page,
  }) => {
    await page.context().addCookies(cookies)
    await page.goto('/discovered')
    await expect(page.getByText('No unknown machine has asked to boot.')).toBeVisible()
    const now = Date.now()
    await tenant.discover({
      ...{ mac, vendorClass: hostile, hostName: hostile, asked: 'http', requests: 3, relay: '10.20.0.1' },
      ...{ firstSeenUnixMs: now, lastSeenUnixMs: now },
    })
    await expect(row(page, mac)).toContainText(hostile)
    await expect(row(page, mac)).toContainText('through relay 10.20.0.1')
    await page.getByRole('checkbox', { name: `Select ${mac}` }).check()
    await page.getByRole('button', { name: 'Ignore' }).click()
    await expect(page.getByText('No unknown machine has asked to boot.')).toBeVisible()
    await page.getByRole('combobox', { name: 'State' }).selectOption('Ignored')
    await expect(page).toHaveURL('/discovered?state=ignored')
    await page.getByRole('checkbox', { name: `Select ${mac}` }).check()
    await page.getByRole('button', { name: 'Ignore no more' }).click()
    await expect(page.getByText('No machine fits these filters.')).toBeVisible()
    await page.getByRole('button', { name: 'Clear' }).click()
    await expect(row(page, mac)).toBeVisible()
  })
})
