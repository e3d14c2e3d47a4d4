import { addVersion, holds } from '../lib/control-plane/copies.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// Which versions a vDisk keeps, and what that means for the stores of edges; the test plays the edge.

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const gib = 1024 ** 3
const dayMs = 86_400_000
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const dialog = (page: Page) => page.getByRole('dialog')
const field = (page: Page, name: string) => dialog(page).getByLabel(name, { exact: true })

test('retention says what it would delete, and what that frees, before it is saved', async ({ page }) => {
  const first = tenant.rows.versionId
  const [second, third] = [
    await addVersion(tenant, 2, { releasedAt: new Date(Date.now() - 2 * dayMs) }),
    await addVersion(tenant, 3, { releasedAt: new Date(Date.now() - dayMs) }),
  ]
  await holds(tenant, [first, second, third])
  await page.goto(`/vdisks/${tenant.rows.vdiskId}`)
  const retention = page.getByRole('region', { name: 'Retention' })
  await expect(retention).toContainText('All versions stay until somebody deletes them.')
  await button(page, 'Edit retention').click()
  await field(page, 'Versions that stay').selectOption('The last released ones, and those in use')
  const preview = dialog(page).getByRole('region', { name: 'Preview' })
  await expect(preview).toContainText('Deletes no version now.')
  await field(page, 'Number of released versions').fill('1')
  await expect(preview).toContainText('Deletes 2 versions now: 2, 1.')
  await expect(preview).toContainText(/Frees at least 6\.00\sMiB at edge-1/)
  await expect(preview).toContainText('Version 3 stays. Devices boot it by default.')
  expect(await seriousProblems(page)).toEqual([])
  await field(page, 'Number of released versions').fill('0')
  await expect(dialog(page).getByRole('status')).toHaveText('Enter how many versions stay: 1 to 1000.')
  await expect(button(page, 'Save')).toBeDisabled()
  await field(page, 'Number of released versions').fill('2')
  await button(page, 'Save').click()
  await expect(retention).toContainText('The last 2 released versions stay, and so does every version in use.')
})

test('an edge says when its store is full, and when it is cleaned', async ({ page }) => {
  const { organizationId } = tenant.rows
  const { edgeId } = tenant
  const totalBytes = 400 * gib
  // 20 GiB stay free as a reserve. Of the rest, 5 GiB go each day.
  const freeAt = (daysAgo: number) => Math.round((45.5 + 5 * daysAgo) * gib)
  const samples = Array.from({ length: 20 }, (_, index) => {
    const daysAgo = (20 - index) / 4
    const measuredAt = new Date(Date.now() - daysAgo * dayMs)
    return { organizationId, edgeId, measuredAt, freeBytes: freeAt(daysAgo), totalBytes }
  })
  await tenant.inDatabase((db) => db.edgeSpace.createMany({ data: samples }))
  const memory = { memoryTotalBytes: gib, memoryAvailableBytes: gib, fileCacheBytes: 0 }
  const store = { storeFreeBytes: freeAt(0), storeTotalBytes: totalBytes }
  await tenant.beats(undefined, { machine: { loadAverage: 0, processors: 2, ...memory, ...store } })
  await page.goto(`/edges/${edgeId}`)
  const space = page.getByRole('region', { name: 'Free space' })
  await expect(space.getByRole('alert')).toContainText('The store fills within days.')
  await expect(space).toContainText(/25\.5\sGiB of 400\sGiB/)
  await expect(space).toContainText(/5\.00\sGiB less free each day/)
  await expect(space).toContainText('in 5 days')
  await expect(space.getByRole('img', { name: 'Free space over the last 60 days' })).toBeVisible()

  const cleaning = page.getByRole('region', { name: 'Cleaning' })
  await expect(cleaning).toContainText('After something was deleted, between 01:00 and 05:00')
  await button(page, 'Edit cleaning').click()
  await field(page, 'Free unused space').selectOption('Every day')
  await field(page, 'Start until').fill('')
  await expect(dialog(page).getByRole('status')).toHaveText('Enter both times, or neither for the whole day.')
  await expect(button(page, 'Save')).toBeDisabled()
  await field(page, 'Start until').fill('05:30')
  expect(await seriousProblems(page)).toEqual([])
  await button(page, 'Save').click()
  await expect(cleaning).toContainText('Every day, between 01:00 and 05:30, by the clocks of the site.')
})
