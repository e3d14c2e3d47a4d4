import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const field = (page: Page, name: string) => page.getByRole('dialog').getByLabel(name, { exact: true })
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

test('a site, a collection and a device are created, and the guide shows the remaining steps', async ({ page }) => {
  const guide = page.getByRole('region', { name: 'Get started' })
  await expect(guide).toContainText('Boot the device')
  const edgeStep = guide.getByRole('listitem').filter({ hasText: 'Check that the edge is online' })
  await guide.getByRole('button', { name: 'Skip: Check that the edge is online' }).click()
  await page.reload()
  await expect(edgeStep).toContainText('skipped')
  await guide.getByRole('button', { name: 'Undo skip: Check that the edge is online' }).click()
  await expect(edgeStep).toContainText('to do')
  await page.goto('/sites')
  await button(page, 'New site').click()
  await field(page, 'Name').fill('Hall')
  await field(page, 'Time zone').fill('Europe/Nowhere')
  await button(page, 'Create site').click()
  await expect(page.getByRole('alert')).toContainText('Unknown time zone')
  await field(page, 'Time zone').fill('Europe/Berlin')
  expect(await seriousProblems(page)).toEqual([])
  await button(page, 'Create site').click()
  await page.getByRole('link', { name: 'Hall' }).click()
  await button(page, 'New collection').click()
  await field(page, 'Name').fill('Pool')
  await field(page, 'vDisk').selectOption('Linux')
  await button(page, 'Create collection').click()
  await expect(button(page, 'Edit Pool')).toBeVisible()
  await page.goto('/devices')
  await button(page, 'New device').click()
  await field(page, 'Name').fill('hall-1')
  await field(page, 'MAC address').fill('02-00-00-00-00-01')
  await field(page, 'Collection').selectOption('Pool, Hall')
  await button(page, 'Create device').click()
  await expect(row(page, 'hall-1')).toContainText('Linux')
})

test('a conflicting change names the other author, and overwrites only on request', async ({ page }) => {
  const [deviceId = ''] = tenant.rows.deviceIds
  await page.goto(`/devices/${deviceId}`)
  await button(page, 'Edit').click()
  await field(page, 'Name').fill('mine')
  const elsewhere = await page.request.post('/api/trpc/device.update', {
    data: { deviceId, revision: 1, name: 'theirs' },
  })
  expect(elsewhere.status()).toBe(200)
  await button(page, 'Save').click()
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText(
    'changed in the meantime: A admin changed name',
  )
  await button(page, 'Load latest version').click()
  await expect(page.getByRole('heading', { level: 1, name: 'theirs' })).toBeVisible()
})

test('a deleted object is in the trash and can be restored from there', async ({ page }) => {
  await page.goto(`/devices/${tenant.rows.deviceIds[0]}`)
  await button(page, 'Delete').click()
  await button(page, 'Delete pc-01').click()
  await expect(page).toHaveURL(/\/devices$/)
  await expect(row(page, 'pc-02')).toBeVisible()
  await expect(row(page, 'pc-01')).toHaveCount(0)
  await page.goto('/trash')
  await button(page, 'Restore pc-01').click()
  await expect(page.getByText('The trash is empty.')).toBeVisible()
  await page.goto('/devices')
  await expect(row(page, 'pc-01')).toBeVisible()
})

test('a CSV file with a wrong line shows that line and changes nothing; the corrected file is imported', async ({
  page,
}) => {
  const choose = (text: string) =>
    page.getByLabel('CSV file').setInputFiles({ name: 'devices.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })
  await page.goto('/devices')
  await button(page, 'Import CSV').click()
  await choose('mac;name;collection\n02-00-00-00-00-01;new-1;Lab\nnonsense;new-2;Lab\n')
  await button(page, 'Preview changes').click()
  const dialog = page.getByRole('dialog')
  await expect(row(page, 'line 3')).toContainText('A MAC address has twelve hexadecimal digits.')
  expect(await seriousProblems(page)).toEqual([])
  await choose('mac;name;collection\n02-00-00-00-00-01;new-1;Lab\n02-00-00-00-00-02;new-2;Lab\n')
  await button(page, 'Preview changes').click()
  await expect(dialog).toContainText('2 new, 0 changed, 0 unchanged.')
  await button(page, 'Import devices').click()
  await expect(row(page, 'new-2')).toBeVisible()
})

test('all selected devices are moved at once after a preview of each', async ({ page }) => {
  await page.goto('/devices')
  await page.getByLabel('Select all shown').check()
  await button(page, 'Edit or move').click()
  await field(page, 'Add tags').fill('term-2')
  await expect(field(page, 'Boot programs')).toContainText('Inherit from collection or site')
  await field(page, 'vDisk').selectOption(tenant.rows.vdiskId)
  await field(page, 'Boot menu').selectOption('No menu')
  await button(page, 'Preview changes').click()
  await expect(page.getByRole('dialog')).toContainText('0 new, 6 changed, 0 unchanged.')
  await expect(row(page, 'pc-01')).toContainText('tags, vDisk, boot menu')
  expect(await seriousProblems(page)).toEqual([])
  await button(page, 'Apply changes').click()
  await expect(page.getByText('6 devices updated.', { exact: true })).toBeVisible()
  const { result } = await (
    await page.request.get(
      `/api/trpc/device.get?input=${encodeURIComponent(JSON.stringify({ deviceId: tenant.rows.deviceIds[0] }))}`,
    )
  ).json()
  expect(result.data).toMatchObject({
    ownVdisk: { id: tenant.rows.vdiskId },
    bootMenu: { choice: 'none' },
    tags: ['term-2'],
  })
})
