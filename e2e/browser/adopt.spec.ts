import { randomUUID } from 'node:crypto'
import type { StoredVersion } from '@bootfarm/proto/uplink'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// Images that were imported by hand at an edge. The test plays the edge; faults/adopt.test.ts uses a real one.

test.use({ storageState: { cookies: [], origins: [] } })

const root = Buffer.alloc(32, 4).toString('base64')
const sizes = { ownBytes: 2 ** 29, sharedBytes: 0, reclaimableBytes: 2 ** 29 }
const image = (name: string, more: Partial<StoredVersion> = {}): StoredVersion => ({
  versionId: randomUUID(),
  state: 'present',
  root,
  ...sizes,
  image: { name, sizeBytes: 2 ** 31, createdUnixMs: 1_795_000_000_000, hasKernel: true },
  ...more,
})
const lab = image('Lab by hand')
const versions = [
  lab,
  image('Kiosk'),
  image('Half', { state: 'importing', root: undefined, image: undefined }),
  image('Broken', { state: 'damaged', root: undefined, image: undefined }),
]

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await tenant.storeSays({ inventory: { scan: 1, isLast: true, versions } })
  await signInAs(page, tenant.person)
  await page.goto(`/edges/${tenant.edgeId}`)
})

const images = (page: Page) => page.getByRole('list', { name: 'Images without a vDisk' })
const dialog = (page: Page) => page.getByRole('dialog')
const field = (page: Page, name: string) => dialog(page).getByLabel(name, { exact: true })
const whatHappens = (page: Page) => dialog(page).getByRole('region', { name: 'Preview' })
const adopt = (page: Page) => dialog(page).getByRole('button', { name: 'Adopt', exact: true }).click()
const jobs = (page: Page) => page.getByRole('list', { name: 'Storage jobs' })

async function endJob(end: 'done' | 'failed'): Promise<void> {
  const [job] = (await tenant.state()).storeJobs ?? []
  const report = { id: job?.id ?? '', progressBytes: 2 ** 29, totalBytes: 0 }
  const made = { versionId: job?.versionId ?? '', root, counter: 3, sizeBytes: 2 ** 31, commandLine: 'quiet' }
  await tenant.storeSays({
    jobs: [
      end === 'done'
        ? { ...report, state: 'done', made }
        : { ...report, state: 'failed', message: 'a block is damaged' },
    ],
  })
}

test('an image is adopted from the page, which shows the result first, and becomes a version of its vDisk', async ({
  page,
}) => {
  await page.getByRole('button', { name: 'Adopt Lab by hand' }).click()
  await expect(whatHappens(page)).toContainText('This creates the vDisk Lab by hand.')
  await field(page, 'Adopt as a version of').selectOption('Linux')
  await expect(whatHappens(page)).toContainText('The image becomes the next version of Linux.')
  await expect(whatHappens(page)).toContainText('first reads and verifies the whole image (a disk of 2.00 GiB)')
  await expect(whatHappens(page)).toContainText('Test devices boot it from their next boot')
  await field(page, 'After adoption').selectOption('Release')
  await expect(whatHappens(page)).toContainText('Production devices boot it from their next boot')
  expect(await seriousProblems(page)).toEqual([])
  await adopt(page)
  await expect(jobs(page)).toContainText('Adopt Linux version 2')
  await expect(images(page).getByText('Lab by hand')).toHaveCount(0)
  await page.reload()
  await expect(jobs(page)).toContainText('waiting for its edge')
  await endJob('done')
  await expect(jobs(page)).toContainText('done')
  await page.goto(`/vdisks/${tenant.rows.vdiskId}`)
  const version = page
    .getByRole('list', { name: 'Versions' })
    .getByRole('listitem')
    .filter({
      has: page.getByText('Version 2', { exact: true }),
    })
  await expect(version.getByText('default', { exact: true })).toBeVisible()
  await expect(version).toContainText('512 MiB unique')
})

test('an image that cannot be adopted shows the reason, and a failed adoption leaves the image unchanged', async ({
  page,
}) => {
  for (const [found, why] of [
    [versions[2], 'still being imported'],
    [versions[3], 'The image is damaged'],
  ] as const) {
    const row = images(page)
      .getByRole('listitem')
      .filter({ hasText: found?.versionId ?? '' })
    await expect(row).toContainText(why)
    await expect(row.getByRole('button')).toBeDisabled()
  }
  await page.getByRole('button', { name: 'Adopt Kiosk' }).click()
  await field(page, 'vDisk name').fill('Linux')
  await adopt(page)
  await expect(dialog(page).getByRole('alert')).toContainText('Linux')
  await field(page, 'vDisk name').fill('Kiosks')
  await adopt(page)
  await expect(jobs(page)).toContainText('Adopt Kiosks version 1')
  await endJob('failed')
  await expect(jobs(page)).toContainText('a block is damaged')
  await expect(images(page)).toContainText('Kiosk')
  await expect(page.getByRole('button', { name: 'Adopt Kiosk' })).toBeEnabled()
})
