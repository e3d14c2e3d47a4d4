import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant

test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

test('an API key is created, used and revoked, and its secret is shown once', async ({ page, baseURL }) => {
  await page.goto('/api-keys')
  await page.getByRole('button', { name: 'Create API key' }).click()
  await page.getByLabel('Name').fill('Night report')
  await page.getByLabel('Role', { exact: true }).selectOption('operator')
  await page.getByRole('checkbox', { name: 'device.read' }).check()
  await page.getByRole('button', { name: 'Create API key' }).click()
  const secret = await page.getByLabel('Secret of the new API key').inputValue()
  expect(await seriousProblems(page)).toEqual([])

  const ask = (path: string) => fetch(`${baseURL}/api/v1${path}`, { headers: { authorization: `Bearer ${secret}` } })
  const devices = await ask('/devices?limit=2')
  expect(devices.status).toBe(200)
  expect(devices.headers.get('ratelimit-limit')).toBe('600')
  expect((await ask('/boots')).status).toBe(403)

  await page.reload()
  await expect(page.getByRole('row', { name: /Night report/ })).toContainText('Active')
  expect(await page.content()).not.toContain(secret)
  await page.getByRole('button', { name: 'Revoke Night report' }).click()
  await page.getByRole('button', { name: 'Revoke API key' }).click()
  await expect(page.getByRole('row', { name: /Night report/ })).toContainText('Revoked')
  expect((await ask('/devices')).status).toBe(401)
})

test('who signed in long ago enters the password before making a key, and a colleague takes it over', async ({
  page,
  baseURL,
}) => {
  await tenant.signedInBefore(tenant.person, 11)
  await page.goto('/api-keys')
  await page.getByRole('button', { name: 'Create API key' }).click()
  await page.getByLabel('Name').fill('Nightly')
  await page.getByRole('button', { name: 'Create API key' }).click()
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.getByLabel('Your password').fill('not the password')
  await dialog.getByRole('button', { name: 'Confirm' }).click()
  await expect(dialog.getByRole('alert')).toContainText('The password is incorrect.')
  expect(await seriousProblems(page)).toEqual([])
  await dialog.getByLabel('Your password').fill(tenant.person.password)
  await dialog.getByRole('button', { name: 'Confirm' }).click()
  const secret = await page.getByLabel('Secret of the new API key').inputValue()
  await page.reload()
  const row = page.getByRole('row', { name: /Nightly/ })
  await expect(row).toContainText('Active')
  await expect(row.getByRole('button', { name: /Take over/ })).toHaveCount(0)

  const colleague = await tenant.member('admin')
  await leaveSession(page)
  await signInAs(page, colleague)
  await page.goto('/api-keys')
  await page.getByRole('button', { name: 'Take over Nightly' }).click()
  await page.getByRole('button', { name: 'Take over', exact: true }).click()
  await expect(row.getByRole('button', { name: /Take over/ })).toHaveCount(0)
  const headers = { authorization: `Bearer ${secret}` }
  expect((await fetch(`${baseURL}/api/v1/devices`, { headers })).status).toBe(200)
})

test('unused join tokens are on the site’s page, and one is revoked there', async ({ page }) => {
  // The tenant's edge has not answered yet that it has its identity: its token counts as unused until then.
  await tenant.joinToken()
  await page.goto(`/sites/${tenant.rows.siteId}`)
  const tokens = page.getByRole('table', { name: 'Unused join tokens of this site' })
  await expect(tokens.getByRole('row')).toHaveCount(3)
  expect(await seriousProblems(page)).toEqual([])
  await tokens
    .getByRole('button', { name: /Revoke the join token/ })
    .first()
    .click()
  await page.getByRole('button', { name: 'Revoke join token' }).click()
  await expect(tokens.getByRole('row')).toHaveCount(2)
})

test('a webhook sends a test message, and its page shows the answer', async ({ page }) => {
  const received: string[] = []
  const receiver = createServer((request, response) => {
    received.push(String(request.headers['webhook-signature']))
    response.writeHead(202).end('thank you')
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  try {
    await page.goto('/webhooks')
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByLabel('Name').fill('Chat')
    await page.getByLabel('URL').fill(`http://127.0.0.1:${port}/in`)
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await expect(page.getByLabel('Secret of the new webhook')).toHaveValue(/^whsec_/)
    await page.getByRole('link', { name: 'Chat' }).click()
    await page.getByRole('button', { name: 'Send test message' }).click()
    const row = page.getByRole('row', { name: /ping/ })
    await expect(row).toContainText('Delivered')
    await row.getByText(/^202 in/).click()
    await expect(row).toContainText('thank you')
    expect(received).toEqual([expect.stringMatching(/^v1,/)])
    expect(await seriousProblems(page)).toEqual([])
  } finally {
    receiver.close()
  }
})
