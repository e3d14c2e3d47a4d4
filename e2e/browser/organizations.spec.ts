import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { required } from '../lib/control-plane/api-client.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signIn } from './demo-sign-in.ts'
import { mailedLink } from './mailed-link.ts'

test.use({ storageState: { cookies: [], origins: [] } })

const password = 'correct horse battery'

/** Signs in, and returns once the navigation is shown. */
async function enter(page: Page, person: { email: string; password: string }): Promise<void> {
  await page.goto('/sign-in')
  await signIn(page, person)
  await expect(page.getByRole('navigation', { name: 'Main' })).toBeVisible()
}

async function noSeriousProblems(page: Page): Promise<void> {
  await expect(page.getByRole('status', { name: /^Loading/ })).toHaveCount(0)
  expect(await seriousProblems(page)).toEqual([])
}

async function makePlatformOperator(email: string): Promise<void> {
  const db = createDb(readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim())
  try {
    await db.user.update({ where: { email }, data: { isPlatformOperator: true } })
  } finally {
    await db.$disconnect()
  }
}

test('a person who signs up by a mailed link creates an organization, requests its deletion, and keeps it', async ({
  page,
}) => {
  const email = `${randomUUID()}@example.test`
  await page.goto('/sign-in')
  await page.getByRole('link', { name: 'No account yet?' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Sign up' })).toBeVisible()
  await page.getByLabel('E-mail').fill(email)
  await page.getByRole('button', { name: 'Send link' }).click()
  await expect(page.getByText('We have sent a link to this address')).toBeVisible()
  await noSeriousProblems(page)
  await page.goto(await mailedLink(email, 'sign-up'))
  await page.getByLabel('Your name').fill('Night shift')
  await page.getByLabel('New password').fill(password)
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Sign in to Bootfarm' })).toBeVisible()
  await signIn(page, { email, password })

  await expect(page.getByRole('heading', { level: 1, name: 'Create an organization' })).toBeVisible()
  await noSeriousProblems(page)
  await page.getByLabel('Organization').fill('Night school')
  await page.getByRole('button', { name: 'Create organization' }).click()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Organization' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Night school' })).toBeVisible()
  const devices = page.getByRole('row', { name: /^Devices/ })
  await expect(devices).toContainText('100')
  await expect(page.getByRole('table', { name: 'Signing keys' })).toContainText('Active')
  await noSeriousProblems(page)

  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Evening school')
  await page.getByRole('dialog').getByRole('button', { name: 'Rename organization' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Evening school' })).toBeVisible()

  await page.getByRole('button', { name: 'Delete organization' }).click()
  const ask = page.getByRole('button', { name: 'Request deletion' })
  await expect(ask).toBeDisabled()
  await page.getByLabel('Type the organization’s name: Evening school').fill('Evening school')
  await page.getByLabel('Your password').fill('another password')
  await ask.click()
  await expect(page.getByText('The password is incorrect.')).toBeVisible()
  await page.getByLabel('Your password').fill(password)
  await ask.click()
  const banner = page.getByText('This organization will be deleted after')
  await expect(banner).toBeVisible()
  await noSeriousProblems(page)
  await page.getByRole('button', { name: 'Cancel deletion' }).click()
  await expect(banner).toBeHidden()
})

test('a platform operator sees figures, sets quotas and suspends, and members see the effect', async ({ page }) => {
  const [tenant, keeper] = [await Tenant.create('admin'), await Tenant.create('admin')]
  const name = `Organization ${await slugOf(tenant)}`
  await makePlatformOperator(keeper.person.email)
  await enter(page, keeper.person)
  await page.getByRole('link', { name: 'Platform' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Platform' })).toBeVisible()
  await page.getByLabel('Search organizations').fill(name)
  await page.getByRole('button', { name: `Quotas of ${name}` }).click()
  await page.getByLabel('Devices').fill('6')
  await page.getByRole('button', { name: 'Save quotas' }).click()
  const row = page.getByRole('row', { name: new RegExp(name) })
  await expect(row).toContainText('6 of 6')
  await page.getByRole('button', { name: `Suspend ${name}` }).click()
  await page.getByRole('button', { name: 'Suspend organization' }).click()
  await expect(row).toContainText('Suspended')
  await noSeriousProblems(page)

  await leaveSession(page)
  await enter(page, tenant.person)
  await expect(page.getByText('This organization is suspended')).toBeVisible()
  await expect(page.getByRole('link', { name: 'Platform' })).toHaveCount(0)
  await page.goto('/organization')
  await expect(page.getByRole('row', { name: /^Devices/ })).toContainText('Full')
  await page.setViewportSize({ width: 390, height: 844 })
  await noSeriousProblems(page)
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
  await page.goto('/platform')
  await expect(page.getByText('You cannot view this page')).toBeVisible()
})

async function slugOf({ rows }: Tenant): Promise<string> {
  const db = createDb(readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim())
  try {
    const { slug } = await db.organization.findUniqueOrThrow({ where: { id: rows.organizationId } })
    return slug
  } finally {
    await db.$disconnect()
  }
}
