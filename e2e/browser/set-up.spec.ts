import { randomUUID } from 'node:crypto'
import { type OidcProvider, startOidcProvider } from '@bootfarm/api/testing/oidc-provider'
import { OwnInstallation } from '../lib/control-plane/own-installation.ts'
import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signIn } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })
// The second person signs in to what the first one has set up.
test.describe.configure({ mode: 'serial' })

const client = { clientId: 'bootfarm', clientSecret: 'a secret between the two' }
const owner = { email: 'first@example.test', password: 'correct horse battery' }
let installation: OwnInstallation
let provider: OidcProvider

test.beforeAll(async () => {
  installation = await OwnInstallation.start(async (webUrl) => {
    provider = await startOidcProvider({ ...client, webUrl })
    return {
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: client.clientId,
      OIDC_CLIENT_SECRET: client.clientSecret,
      OIDC_NAME: 'Test provider',
      OIDC_MEMBERS: 'members.test=acme:operator',
    }
  })
})
test.afterAll(async () => {
  await installation.stop()
  provider.close()
})

test('an installation without accounts gets its first owner by a link from the command line, once', async ({
  page,
}) => {
  const [printed] = await installation.api.waitFor(/http:\/\/localhost:\d+\/setup\/[\w-]+/)
  const { code, output } = await installation.command('owner-link')
  expect(code).toBe(0)
  const link = output.trim()
  expect(link).toMatch(/^http:\/\/localhost:\d+\/setup\/[\w-]+$/)
  // The newer link replaces the one that was printed at the start.
  await page.goto(printed)
  await expect(page.getByRole('alert').filter({ hasText: 'a newer one was created' })).toBeVisible()

  await page.goto(link)
  await page.getByLabel('Organization').fill('Acme')
  expect(await seriousProblems(page)).toEqual([])
  await page.getByLabel('Your name').fill('First owner')
  await page.getByLabel('E-mail').fill(owner.email)
  await page.getByLabel('New password').fill('short')
  await page.getByRole('button', { name: 'Create organization' }).click()
  await expect(page.getByRole('alert').filter({ hasText: 'At least 12 characters' })).toBeVisible()
  await page.getByLabel('New password').fill(owner.password)
  await page.getByRole('button', { name: 'Create organization' }).click()
  await expect(page).toHaveURL(/\/sign-in$/)
  await signIn(page, owner)
  await expect(page.getByRole('button', { name: /Acme/ })).toBeVisible()

  await page.goto(`${installation.webUrl}/members`)
  await expect(page.getByRole('row').filter({ hasText: owner.email })).toContainText('owner')
  const again = await installation.command('owner-link')
  expect([again.code, again.output]).toEqual([1, expect.stringContaining('Somebody has an account already')])
})

test('single sign-on admits people by rule, and explains a refusal', async ({ page }) => {
  const claimsOf = (domain: string) => ({
    email: `${randomUUID()}@${domain}`,
    email_verified: true,
    name: 'Somebody Else',
  })
  const goToProvider = () => page.getByRole('button', { name: 'Continue with Test provider' }).click()
  provider.setClaims(claimsOf('elsewhere.test'))
  await page.goto(`${installation.webUrl}/sign-in`)
  // Nobody can sign up here by themselves.
  await expect(page.getByRole('link', { name: 'Forgot password?' })).toBeVisible()
  await expect(page.getByRole('link', { name: 'No account yet?' })).toHaveCount(0)
  await goToProvider()
  await expect(page.getByRole('alert').filter({ hasText: 'Your address has not been invited' })).toBeVisible()

  await leaveSession(page)
  provider.setClaims(claimsOf('members.test'))
  await page.goto(`${installation.webUrl}/devices`)
  await goToProvider()
  await expect(page).toHaveURL(`${installation.webUrl}/devices`)
  await expect(page.getByRole('button', { name: /Somebody Else/ })).toBeVisible()
  await page.goto(`${installation.webUrl}/account`)
  await expect(page.getByText('You sign in through your organization’s identity provider')).toBeVisible()
})
