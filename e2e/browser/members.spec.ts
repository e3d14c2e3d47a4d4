import { randomUUID } from 'node:crypto'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Locator, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('owner')
  await signInAs(page, tenant.person)
})

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
const field = (page: Page, name: string) => page.getByRole('dialog').getByLabel(name, { exact: true })
/** Finds the option with this text. */
async function choose(select: Locator, text: string): Promise<void> {
  const option = select.locator('option', { hasText: text })
  await select.selectOption(await option.getAttribute('value'))
}

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

test('a person is invited to a site and reminded, and the invitation is withdrawn', async ({ page }) => {
  const email = `${randomUUID()}@example.test`
  await page.getByRole('link', { name: 'Members' }).click()
  await button(page, 'Invite member').click()
  await field(page, 'E-mail').fill('nobody')
  await choose(field(page, 'Scope'), 'Collection Lab')
  await field(page, 'Role').selectOption('operator')
  await button(page, 'Send invitation').click()
  await expect(page.getByRole('dialog').getByRole('alert')).toHaveText('is not an e-mail address')
  expect(await seriousProblems(page)).toEqual([])
  await field(page, 'E-mail').fill(email)
  await button(page, 'Send invitation').click()
  await expect(row(page, email)).toContainText('operator of the collection Lab in')
  await button(page, `Resend the invitation to ${email}`).click()
  await expect(page.getByText(`Invitation sent to ${email} with a new link`).first()).toBeVisible()
  await button(page, `Revoke the invitation for ${email}`).click()
  await button(page, 'Revoke invitation').click()
  await expect(row(page, email)).toHaveCount(0)
})

test('roles are granted and revoked, a late change is reported, and the last owner stays', async ({ page }) => {
  const { email } = await tenant.member('viewer')
  await page.goto('/members')
  await row(page, email).getByRole('link').click()
  await button(page, 'Add role').click()
  await choose(field(page, 'Scope'), 'Collection Lab')
  await field(page, 'Role').selectOption('operator')
  const userId = page.url().split('/').at(-1)
  const elsewhere = await page.request.post('/api/trpc/member.grant', {
    data: { userId, role: 'auditor', scope: {} },
  })
  expect(elsewhere.status()).toBe(200)
  await button(page, 'Add role').click()
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText(
    'changed in the meantime: A owner changed role',
  )
  await button(page, 'Overwrite with my changes').click()
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await button(page, 'Remove auditor of the whole organization').click()
  await button(page, 'Remove role').click()
  await expect(button(page, 'Remove auditor of the whole organization')).toHaveCount(0)
  await expect(page.getByRole('region', { name: 'History' }).first()).toContainText('member: take')
  expect(await seriousProblems(page)).toEqual([])

  await page.goto('/members')
  await row(page, tenant.person.email).getByRole('link').click()
  await button(page, 'Remove owner of the whole organization').click()
  await button(page, 'Remove role').click()
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('An organization needs an owner')
  await button(page, 'Cancel').click()

  await page.goto(`/members/${userId}`)
  await button(page, 'Remove').click()
  await button(page, 'Remove member').click()
  await expect(page).toHaveURL('/members')
  await expect(row(page, email)).toHaveCount(0)
})

test('the page of roles explains a member’s permissions on a device, and their limits', async ({ page }) => {
  const { email } = await tenant.member('viewer')
  await page.goto('/roles')
  await expect(row(page, 'device.power').last()).toContainText('yes')
  const member = page.getByLabel('Member', { exact: true })
  await member.selectOption({ label: `A viewer, ${email}` })
  await expect(row(page, 'device.power').first()).toContainText('It requires owner, admin or operator')
  await page.getByLabel('Scope', { exact: true }).selectOption('deviceId')
  await page.getByLabel('Device', { exact: true }).selectOption({ label: 'pc-01' })
  await expect(page.getByRole('status').filter({ hasText: 'permissions in the device pc-01' })).toBeVisible()
  await expect(row(page, 'device.read').first()).toContainText('As viewer of the whole organization.')
  expect(await seriousProblems(page)).toEqual([])
  await page.reload()
  await expect(row(page, 'device.read').first()).toContainText('As viewer of the whole organization.')
})
