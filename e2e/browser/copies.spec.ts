import { spreadVersion } from '../lib/control-plane/copies.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// The product's API and pages; the test plays two edges, one of which lacks a version.

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const dialog = (page: Page) => page.getByRole('dialog')
const field = (page: Page, name: string) => dialog(page).getByLabel(name, { exact: true })
const confirm = (page: Page, name: string) => dialog(page).getByRole('button', { name, exact: true }).click()

test('a promotion waits for edges, shows how far each one is, and is cancelled or done without them', async ({
  page,
}) => {
  const { second } = await spreadVersion(tenant)
  await page.goto(`/vdisks/${tenant.rows.vdiskId}`)
  const promotion = page.getByRole('region', { name: 'Promotion of version 2: waiting for edges' })
  const askToWait = async () => {
    await button(page, 'Promote: version 2').click()
    await field(page, 'Give up after').selectOption('1 day')
    await confirm(page, 'Promote when all edges hold it')
    await expect(promotion).toContainText('1 of 2 edges holds version 2.')
  }
  await button(page, 'Promote: version 2').click()
  await field(page, 'Edges that lack the version').selectOption('Do not wait')
  await expect(dialog(page)).toContainText('At a site without a copy they cannot boot')
  await page.keyboard.press('Escape')
  await askToWait()
  // The keeper of placements orders it within ten seconds.
  await expect.poll(async () => (await tenant.state(second)).storeJobs?.map(({ kind }) => kind)).toEqual(['fetch'])
  const [fetch] = (await tenant.state(second)).storeJobs ?? []
  const progress = { state: 'running' as const, progressBytes: 300, totalBytes: 1000 }
  await tenant.storeSays({ jobs: [{ id: fetch?.id ?? '', ...progress }] }, second)
  await expect(promotion.getByRole('row', { name: /^edge-2/ })).toContainText('fetching 30 %')
  const copies = page.getByRole('region', { name: 'Copies of versions' })
  await expect(copies.getByRole('row', { name: /^edge-2/ })).toContainText('fetching 30 %')
  expect(await seriousProblems(page)).toEqual([])
  await button(page, 'Cancel promotion').click()
  await expect(page.getByText('Promotion of version 2 cancelled.', { exact: true })).toBeVisible()
  await expect(promotion).toHaveCount(0)
  await expect(page.getByRole('main')).toBeFocused()
  await askToWait()
  await button(page, 'Promote now').click()
  const question = page.getByRole('alertdialog', { name: 'Promote version 2 now?' })
  await expect(question).toContainText('1 edge lacks the version.')
  await question.getByRole('button', { name: 'Promote version 2 now' }).click()
  const versions = page.getByRole('list', { name: 'Versions' }).getByRole('listitem')
  const promoted = versions.filter({ has: page.getByText('Version 2', { exact: true }) })
  await expect(promoted.getByText('default', { exact: true })).toBeVisible()
  await expect(promotion).toHaveCount(0)
})

test('a farm says which edges hold its vDisks, with limits for a site; a vDisk can have another placement', async ({
  page,
}) => {
  await tenant.secondSite('Paris')
  await page.goto('/farms')
  await page.getByRole('button', { name: /^Placement of vDisks in/ }).click()
  await field(page, 'Versions are held by').selectOption('Edges chosen below')
  await field(page, 'Number of edges').fill('17')
  await expect(dialog(page).getByRole('status')).toHaveText('Enter 0 to 16 edges, or leave the number empty for all.')
  await expect(dialog(page).getByRole('button', { name: 'Save' })).toBeDisabled()
  await field(page, 'Number of edges').fill('')
  await field(page, 'Site with another rule').selectOption('Paris')
  await confirm(page, 'Add rule')
  const paris = dialog(page).getByRole('group', { name: 'Paris' })
  await expect(paris.getByLabel('Number of edges')).toBeFocused()
  await paris.getByLabel('Number of edges').fill('1')
  await paris.getByLabel('Limit per edge in MiB per second').fill('10')
  await paris.getByLabel('Start transfers from').fill('22:00')
  await expect(dialog(page).getByRole('status')).toHaveText('Paris: Enter both times, or neither.')
  await paris.getByLabel('Start transfers until').fill('06:00')
  expect(await seriousProblems(page)).toEqual([])
  await confirm(page, 'Save')
  await expect(dialog(page)).toHaveCount(0)

  await page.goto(`/vdisks/${tenant.rows.vdiskId}`)
  const copies = page.getByRole('region', { name: 'Copies at edges' })
  const rules = copies.getByRole('list', { name: 'Placement' }).getByRole('listitem')
  await expect(copies).toContainText('Placement of the farm')
  const ofParis = /^Paris: 1 edge, at most 10(\.0)?\sMiB per second each, from 22:00 to 06:00\.$/
  await expect(rules).toHaveText(['All edges of each other site.', ofParis])
  await button(page, 'Edit placement').click()
  await field(page, 'Versions are held by').selectOption('Its own placement')
  await confirm(page, 'Remove the rule of Paris')
  await field(page, 'Number of edges').fill('2')
  await confirm(page, 'Save')
  await expect(rules).toHaveText(['2 edges of each site.'])
  await expect(copies).not.toContainText('Placement of the farm')
})
