import { totpOf } from '@bootfarm/api/testing/totp'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signIn, signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create()
  await signInAs(page, tenant.person)
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

test('two-factor sign-in is set up, asked for at the next sign-in, and turned off with the password', async ({
  page,
  browser,
}) => {
  const { person } = tenant
  await page.goto('/account')
  await button(page, 'Set up').click()
  await page.getByLabel('Your password').fill('not the password')
  await button(page, 'Continue').click()
  await expect(page.getByRole('dialog').getByRole('alert')).toHaveText('The password is incorrect.')
  await page.getByLabel('Your password').fill(person.password)
  await button(page, 'Continue').click()
  await expect(page.getByRole('img', { name: 'QR code' })).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  const secret = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
  await page.getByLabel('Code', { exact: true }).fill(totpOf(secret, Date.now()))
  await button(page, 'Turn on').click()
  const codes = await page.getByRole('figure', { name: 'Backup codes' }).locator('code').textContent()
  const [backupCode = ''] = (codes ?? '').split(' ')
  await button(page, 'I have saved them').click()
  await expect(button(page, 'Turn off')).toBeVisible()

  const elsewhere = await browser.newContext({ storageState: { cookies: [], origins: [] } })
  const other = await elsewhere.newPage()
  await other.goto('/sign-in')
  await signIn(other, person)
  await other.getByLabel('Code').fill(backupCode)
  await button(other, 'Continue').click()
  await expect(other.getByRole('navigation', { name: 'Main' })).toBeVisible()
  await elsewhere.close()

  await button(page, 'Turn off').click()
  await page.getByLabel('Your password').fill(person.password)
  await page.getByRole('dialog').getByRole('button', { name: 'Turn off' }).click()
  await expect(button(page, 'Set up')).toBeVisible()
})

test('other sessions end one by one, and all of them with a new password', async ({ page, browser }) => {
  const { person } = tenant
  const others = await Promise.all(
    ['Firefox/140.0', 'Edg/140.0'].map(async (userAgent) => {
      const context = await browser.newContext({ userAgent, storageState: { cookies: [], origins: [] } })
      const other = await context.newPage()
      await signInAs(other, person)
      // A page that learns that the person was signed out goes to the sign-in page by itself, even in the middle of the
      // next steps.
      await other.goto('about:blank')
      return other
    }),
  )
  await page.goto('/account')
  const sessions = page.getByRole('region', { name: 'Sessions' })
  await expect(sessions.getByRole('row').filter({ hasText: 'Current' })).toHaveCount(1)
  await button(page, 'Sign out Firefox').click()
  await expect(sessions.getByRole('row').filter({ hasText: 'Firefox' })).toHaveCount(0)
  await others[0]?.goto('/devices')
  await expect(others[0] ?? page).toHaveURL(/\/sign-in/)

  await page.getByLabel('Current password').fill('not the password')
  await page.getByLabel('New password').fill('correct horse battery')
  await button(page, 'Change password').click()
  await expect(page.getByText('The current password is incorrect.')).toBeVisible()
  await page.getByLabel('Current password').fill(person.password)
  await button(page, 'Change password').click()
  await expect(page.getByText('Password changed').first()).toBeVisible()
  await expect(sessions.getByRole('row').filter({ hasText: 'Edge' })).toHaveCount(0)
  await others[1]?.goto('/devices')
  await expect(others[1] ?? page).toHaveURL(/\/sign-in/)
  await Promise.all(others.map((other) => other.context().close()))

  await page.getByLabel('Name', { exact: true }).fill('Night shift')
  await button(page, 'Save name').click()
  await expect(page.getByRole('button', { name: /Night shift/ })).toBeVisible()
})

test('a member of several organizations chooses one, which holds in every tab and at the next sign-in', async ({
  page,
}) => {
  const second = await Tenant.create()
  await second.takeIn(tenant.person)
  const [deviceId = ''] = tenant.rows.deviceIds
  await page.goto(`/devices/${deviceId}`)
  const tab = await page.context().newPage()
  await tab.goto('/sites')
  await page.getByRole('button', { name: /Organization/ }).click()
  const choice = page.getByRole('menuitemradio', { checked: false })
  const chosen = (await choice.textContent()) ?? ''
  await choice.click()
  // The device belongs to the other organization; both organizations have this list.
  await expect(page).toHaveURL('/devices')
  await expect(page.getByRole('button', { name: new RegExp(chosen) })).toBeVisible()
  await expect(tab.getByRole('button', { name: new RegExp(chosen) })).toBeVisible()
  await expect(tab).toHaveURL('/sites')

  await leaveSession(page)
  await signInAs(page, tenant.person)
  await expect(page.getByRole('button', { name: new RegExp(chosen) })).toBeVisible()
})
