import { randomUUID } from 'node:crypto'
import { totpOf } from '@bootfarm/api/testing/totp'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signIn, signInAs } from './demo-sign-in.ts'
import { mailedLink } from './mailed-link.ts'

test.use({ storageState: { cookies: [], origins: [] } })

const password = 'correct horse battery'

/** Posts as the page's own script does. */
async function post(page: Page, where: string, body: object): Promise<Record<string, string>> {
  const answer = await page.request.post(where, {
    data: body,
    headers: { origin: new URL(page.url()).origin },
  })
  expect(answer.ok(), `${where}: ${await answer.text()}`).toBe(true)
  return answer.json()
}

test('an invitation is accepted by its address, and its role decides what the page allows', async ({ page }) => {
  const tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
  const email = `${randomUUID()}@example.test`
  await post(page, '/api/v1/invitations', { email, role: 'viewer', scope: {} })
  await leaveSession(page)

  await page.goto(await mailedLink(email, 'invitation'))
  await expect(page.getByText(`invites ${email}`)).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await page.getByLabel('Your name').fill('Night shift')
  await page.getByLabel('New password').fill('short')
  await page.getByRole('button', { name: 'Accept invitation' }).click()
  await expect(page.getByText('At least 12 characters').last()).toBeVisible()
  await page.getByLabel('New password').fill(password)
  await page.getByRole('button', { name: 'Accept invitation' }).click()
  await signIn(page, { email, password })
  const places = page.getByRole('navigation', { name: 'Main' })
  await expect(places.getByRole('link', { name: 'Devices' })).toBeVisible()
  await expect(places.getByRole('link', { name: 'Audit log' })).toBeHidden()
})

test('a forgotten password is reset once by a mailed link', async ({ page }) => {
  const { person } = await Tenant.create('operator')
  await page.goto('/sign-in')
  await page.getByRole('link', { name: 'Forgot password?' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Reset your password' })).toBeVisible()
  await page.getByLabel('E-mail').fill(person.email)
  await page.getByRole('button', { name: 'Send link' }).click()
  await expect(page.getByRole('status')).toContainText('we have sent it a link')
  const link = await mailedLink(person.email, 'reset-password')
  for (const isFirst of [true, false]) {
    await page.goto(link)
    await page.getByLabel('New password').fill(password)
    await page.getByRole('button', { name: 'Set password' }).click()
    if (isFirst) await expect(page).toHaveURL('/sign-in')
    else await expect(page.getByText('This link was already used or has expired.')).toBeVisible()
  }
  await signInAs(page, { ...person, password })
})

test('a person with two-factor sign-in signs in with a code', async ({ page }) => {
  const { person } = await Tenant.create('operator')
  await signInAs(page, person)
  const { totpURI = '' } = await post(page, '/api/auth/two-factor/enable', { password: person.password })
  const secret = new URL(totpURI).searchParams.get('secret') ?? ''
  await post(page, '/api/auth/two-factor/verify-totp', { code: totpOf(secret, Date.now()) })
  await leaveSession(page)

  await page.goto('/sign-in')
  await signIn(page, person)
  await page.getByLabel('Code').fill('000000')
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByText('The code is incorrect')).toBeVisible()
  await page.getByLabel('Code').fill(totpOf(secret, Date.now()))
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByRole('navigation', { name: 'Main' })).toBeVisible()
})
