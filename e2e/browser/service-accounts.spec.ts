import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

test('a service account is created, used by its key, disabled and deleted', async ({ page, baseURL }) => {
  const tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
  await page.goto('/service-accounts')
  await page.getByRole('button', { name: 'Create service account' }).click()
  const dialog = page.getByRole('dialog', { name: 'Create service account' })
  await dialog.getByLabel('Name').fill('Nightly build')
  await dialog.getByLabel('Role').selectOption('operator')
  expect(await seriousProblems(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Create service account' }).click()

  await expect(page.getByRole('heading', { name: 'Nightly build' })).toBeVisible()
  await expect(page.getByRole('table', { name: 'Roles' })).toContainText('operator')
  await page.getByRole('button', { name: 'Create API key' }).click()
  const newKey = page.getByRole('dialog', { name: 'Create API key' })
  await newKey.getByLabel('Name').fill('CI')
  await newKey.getByRole('button', { name: 'Create API key' }).click()
  const secretField = page.getByLabel('Secret of the new API key')
  const secret = await secretField.inputValue()
  const ask = (key: string) => fetch(`${baseURL}/api/v1/session`, { headers: { authorization: `Bearer ${key}` } })
  expect(await (await ask(secret)).json()).toMatchObject({ user: { name: 'service account Nightly build' } })

  await page.getByRole('button', { name: 'Rotate CI' }).click()
  await page.getByRole('button', { name: 'Rotate API key' }).click()
  await expect(secretField).not.toHaveValue(secret)
  const second = await secretField.inputValue()
  await expect(page.getByRole('table', { name: 'API keys of this account' }).getByRole('row')).toHaveCount(3)
  expect([(await ask(secret)).status, (await ask(second)).status]).toEqual([200, 200])
  expect(await seriousProblems(page)).toEqual([])

  await page.getByRole('button', { name: 'Disable' }).click()
  await page.getByRole('button', { name: 'Disable service account' }).click()
  await expect(page.getByRole('button', { name: 'Enable' })).toBeVisible()
  expect((await ask(second)).status).toBe(401)
  await page.getByRole('button', { name: 'Enable' }).click()
  await expect(page.getByRole('button', { name: 'Disable' })).toBeVisible()
  expect((await ask(second)).status).toBe(200)

  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete service account' }).click()
  await expect(page.getByText('No service accounts yet.')).toBeVisible()
  expect((await ask(second)).status).toBe(401)
})
