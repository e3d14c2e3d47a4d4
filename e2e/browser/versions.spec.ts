import { randomUUID } from 'node:crypto'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Locator, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// The product's API and pages; the test plays the edge whose store does the work.

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const field = (page: Page, name: string) => page.getByRole('dialog').getByLabel(name, { exact: true })
const version = (page: Page, number: number): Locator =>
  page
    .getByRole('list', { name: 'Versions' })
    .getByRole('listitem')
    .filter({ has: page.getByText(`Version ${number}`, { exact: true }) })
/** The tag beside its number. */
const access = (page: Page, number: number, word: string) => version(page, number).getByText(word, { exact: true })
const choose = async (page: Page, number: number, step: string) => {
  await button(page, `More actions for version ${number}`).click()
  await page.getByRole('menuitem', { name: step, exact: true }).click()
}
const confirm = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()

/** The store takes its only job, and finishes it with a version of these bytes. @returns its id */
async function finishJob(byte: number): Promise<string> {
  const [job] = (await tenant.state()).storeJobs ?? []
  const [id, versionId] = [job?.id ?? '', job?.versionId ?? '']
  const root = Buffer.alloc(32, byte).toString('base64')
  const sizes = { ownBytes: 2 ** 20, sharedBytes: 2 ** 30, reclaimableBytes: 2 ** 19 }
  await tenant.storeSays({
    jobs: [
      {
        id,
        state: 'done',
        progressBytes: 2 ** 30,
        totalBytes: 2 ** 30,
        made: { versionId, root, counter: byte, sizeBytes: 2 ** 31, commandLine: 'quiet' },
      },
    ],
    inventory: { scan: byte, isLast: false, versions: [{ versionId, state: 'present', root, ...sizes }] },
  })
  return versionId
}

/** The edge tells of its link, and of boots of a version one after the other, of 15 s each. */
async function bootFiveTimes(versionId: string): Promise<void> {
  const none = { streams: 0, tftpBytes: 0, httpBytes: 0, streamBytes: 0, reads: 0, coldReads: 0, coldReadUs: 0 }
  for (let beat = 0; beat < 2; beat += 1) await tenant.beats(undefined, { load: { ...none, linkMbps: 1000 } })
  const series = { widthUs: 400_000, bytes: Array.from({ length: 38 }, () => 500_000) }
  for (let minutes = 5; minutes < 10; minutes += 1)
    await tenant.report({
      id: randomUUID(),
      versionId,
      vdiskId: tenant.rows.vdiskId,
      startedUnixMs: Date.now() - minutes * 60_000,
      series,
    })
}

test('an image is imported, maintained, sealed, tested, promoted and reverted from the page', async ({ page }) => {
  await page.goto(`/vdisks/${tenant.rows.vdiskId}`)
  await expect(version(page, 1)).toContainText('Next boot: 6 devices (pc-01, pc-02, pc-03 …)')
  await button(page, 'Import image').click()
  await field(page, 'Image from').selectOption('a file in the edge’s store')
  await field(page, 'Image').fill('imports/linux.raw')
  await confirm(page, 'Import')
  await expect(version(page, 2)).toContainText('being created')
  const [job] = (await tenant.state()).storeJobs ?? []
  await tenant.storeSays({
    jobs: [
      {
        id: job?.id ?? '',
        state: 'running',
        progressBytes: 2 ** 28,
        totalBytes: 2 ** 30,
        message: 'reading',
      },
    ],
  })
  const bar = page.getByRole('progressbar', { name: 'Import Linux version 2 from imports/linux.raw' })
  await expect(bar).toHaveAttribute('aria-valuenow', '25')
  await page.reload()
  await expect(bar).toHaveAttribute('aria-valuenow', '25')
  expect(await seriousProblems(page)).toEqual([])
  await finishJob(2)
  await expect(access(page, 2, 'test')).toBeVisible()
  await expect(version(page, 2)).toContainText('1.00 MiB unique, 1.00 GiB shared. Deleting frees 512 KiB.')

  await page.goto(`/devices/${tenant.rows.deviceIds[0]}`)
  await button(page, 'Edit').click()
  await field(page, 'Type').selectOption('maintenance')
  await confirm(page, 'Save')
  await expect(page.getByText('maintenance: writes the maintenance version')).toBeVisible()
  await page.goto(`/vdisks/${tenant.rows.vdiskId}`)
  await choose(page, 2, 'New version')
  await expect(field(page, 'Maintenance device')).toContainText('pc-01')
  await confirm(page, 'Start maintenance')
  await expect(version(page, 3)).toContainText('Written by pc-01')
  await expect(version(page, 3)).toContainText('based on version 2')
  await button(page, 'Seal: version 3').click()
  await confirm(page, 'Seal version 3')
  await expect(version(page, 3)).toContainText('sealing')
  const versionId = await finishJob(3)
  await bootFiveTimes(tenant.rows.versionId)
  await button(page, 'Promote: version 3').click()
  const prediction = page.getByRole('dialog').getByRole('region', { name: 'Prediction' })
  await expect(prediction).toContainText('No prediction for version 3: it has 0 boots at')
  await confirm(page, 'Cancel')
  await bootFiveTimes(versionId)
  await page.reload()
  await button(page, 'Promote: version 3').click()
  await expect(prediction).toContainText(
    /With version 3, 6 devices need 1\d.s \(1\d to 1\d.s\) in place of 1\d.s with version 1 until the last one is ready/,
  )
  const whatHappens = page.getByRole('dialog').getByRole('region', { name: 'Preview' })
  await expect(whatHappens).toContainText('Production devices boot version 3 instead of version 1.')
  await expect(whatHappens).toContainText('5 devices (pc-02, pc-03, pc-04 …) get version 3 at the next boot')
  expect(await seriousProblems(page)).toEqual([])
  await confirm(page, 'Promote now')
  await expect(access(page, 3, 'default')).toBeVisible()
  await button(page, 'Roll back to this version: version 1').click()
  await expect(whatHappens).toContainText('Production devices boot version 1 instead of version 3.')
  await confirm(page, 'Roll back to version 1')
  await expect(access(page, 1, 'default')).toBeVisible()
})

test('a planned release is shown with its date and withdrawn; an override holds until it is cancelled', async ({
  page,
}) => {
  const { vdiskId } = tenant.rows
  await page.goto(`/vdisks/${vdiskId}`)
  await button(page, 'Import image').click()
  await field(page, 'Image from').selectOption('a file in the edge’s store')
  await field(page, 'Image').fill('imports/linux.raw')
  await confirm(page, 'Import')
  await expect(version(page, 2)).toContainText('being created')
  await finishJob(2)
  await button(page, 'Promote: version 2').click()
  await field(page, 'When').selectOption('at a date and time')
  const inTwoDays = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10)
  await field(page, 'Date').fill(inTwoDays)
  await confirm(page, 'Schedule release')
  await expect(version(page, 2)).toContainText('Becomes the default at')
  await expect(version(page, 2)).toContainText('site time')
  await button(page, 'Cancel release: version 2').click()
  await expect(button(page, 'Cancel release: version 2')).toHaveCount(0)
  await choose(page, 1, 'Override')
  await confirm(page, 'Set override')
  await expect(access(page, 1, 'override')).toBeVisible()
  await choose(page, 1, 'Delete')
  await expect(page.getByRole('dialog')).toContainText('override')
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Delete version 1' })).toBeDisabled()
  await page.keyboard.press('Escape')
  await button(page, 'Clear override: version 1').click()
  await expect(button(page, 'Clear override: version 1')).toHaveCount(0)

  await button(page, 'Edit write cache').click()
  await field(page, 'Write cache location').selectOption('edge disk, persistent')
  await field(page, 'Limit per device in MiB').fill('2048')
  const elsewhere = await page.request.post('/api/trpc/vdisk.update', {
    data: { vdiskId, revision: await revisionOf(page, vdiskId), note: 'changed by another' },
  })
  expect(elsewhere.status()).toBe(200)
  await confirm(page, 'Save')
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('changed in the meantime')
  await button(page, 'Overwrite with my changes').click()
  await expect(page.getByText('Each device may write 2.00 GiB.')).toBeVisible()
})

test('a waiting job is cancelled, on the page of its edge too', async ({ page }) => {
  await page.goto(`/vdisks/${tenant.rows.vdiskId}`)
  await button(page, 'Import image').click()
  await field(page, 'Image from').selectOption('a file in the edge’s store')
  await field(page, 'Image').fill('imports/linux.raw')
  await confirm(page, 'Import')
  const jobs = page.getByRole('list', { name: 'Storage jobs' })
  await jobs.getByRole('link').click()
  await expect(jobs).toContainText('waiting for its edge')
  await jobs.getByRole('button', { name: /^Cancel/ }).click()
  await expect(jobs).toContainText('cancelled')
})

async function revisionOf(page: Page, vdiskId: string): Promise<number> {
  const input = encodeURIComponent(JSON.stringify({ vdiskId }))
  const answer = await page.request.get(`/api/trpc/vdisk.get?input=${input}`)
  return (await answer.json()).result.data.revision
}
