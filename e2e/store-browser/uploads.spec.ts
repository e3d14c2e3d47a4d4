import { randomBytes } from 'node:crypto'
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, type Page, test } from '@playwright/test'
import { seriousProblems } from '../browser/axe.ts'
import { signIn, signInAs } from '../browser/demo-sign-in.ts'
import { required } from '../lib/control-plane/api-client.ts'
import { StoreEdge } from '../lib/edge/store-edge.ts'

// A file of the browser goes through the API to a real edge, which imports it.

test.use({ storageState: { cookies: [], origins: [] } })

/** `BOOTFARM_UPLOAD_GIB=10` uploads an image that is larger by so much, and cuts it and leaves its page later. */
const extraGib = Number(process.env.BOOTFARM_UPLOAD_GIB ?? 0)
const [cutAt, leftAt] = extraGib > 0 ? [20, 40] : [2, 4]
/** Until an edge has fetched and imported an image, on a busy machine. */
const patience = { timeout: 60_000 + extraGib * 120_000 }
const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-e2e-'))
const image = path.join(folder, 'linux.raw')
let site: StoreEdge

test.beforeAll(async () => {
  site = await StoreEdge.start(
    {
      databaseUrl: readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim(),
      apiUrl: required('BOOTFARM_API_URL'),
      webUrl: required('BOOTFARM_WEB_URL'),
    },
    folder,
  )
  for (let mib = 0; mib < extraGib * 1024; mib += 16) appendFileSync(image, randomBytes(16 << 20))
})
test.afterAll(async () => {
  await site?.edge.stop()
  rmSync(folder, { recursive: true, force: true })
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const field = (page: Page, name: string) => page.getByRole('dialog').getByLabel(name, { exact: true })
const uploads = (page: Page) => page.getByRole('list', { name: 'Uploads' })
const bar = (page: Page) => page.getByRole('progressbar', { name: 'Upload of linux.raw' })

async function beginUpload(page: Page, file = image): Promise<void> {
  await button(page, 'Import image').click()
  await field(page, 'Image').setInputFiles(file)
  await page.getByRole('dialog').getByRole('button', { name: 'Upload and import' }).click()
  await expect(page.getByRole('dialog')).toHaveCount(0)
}

async function continueWith(page: Page, file: string): Promise<void> {
  const chooser = page.waitForEvent('filechooser')
  await button(page, 'Continue: linux.raw').click()
  await (await chooser).setFiles(file)
}

/** Calls `before` with the offset of each piece, in their order; a piece is sent when it has resolved. */
async function watchPieces(page: Page, before: (offset: number, count: number) => Promise<void>): Promise<void> {
  let count = 0
  await page.route('**/uploads/*/bytes', async (route) => {
    const offset = route.request().headers()['upload-offset']
    if (offset !== undefined) await before(Number(offset), ++count)
    // The page may have been left in the meantime.
    await route.continue().catch(() => undefined)
  })
}

test('a file is uploaded through a cut and a closed page, and becomes a version', async ({ page: first, context }) => {
  test.setTimeout(3 * patience.timeout)
  const vdiskPage = `/vdisks/${site.edge.tenant.vdiskId}`
  await signInAs(first, site.edge.person)
  await first.goto(vdiskPage)
  const offsets: number[] = []
  let goOn = () => {}
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  await watchPieces(first, async (offset, count) => {
    offsets.push(offset)
    // The line is cut while one piece is sent; the page is left while a later one is.
    if (count === cutAt) await context.setOffline(true)
    if (count === leftAt) await held
  })
  await beginUpload(first)
  await expect(uploads(first)).toContainText('The connection to the control plane is lost. Trying again.')
  await expect(button(first, 'Try now: linux.raw')).toBeVisible()
  expect(await seriousProblems(first)).toEqual([])
  await context.setOffline(false)
  await expect.poll(() => offsets.length, patience).toBe(leftAt)
  // Nothing was sent twice: the offset of the cut piece is that of the one after it.
  expect(offsets[cutAt]).toBe(offsets[cutAt - 1])
  await button(first, 'Import image').click()
  await field(first, 'Image').setInputFiles(image)
  await first.getByRole('dialog').getByRole('button', { name: 'Upload and import' }).click()
  await expect(first.getByRole('dialog').getByRole('alert')).toContainText('This tab already sends another file.')

  await first.close()
  goOn()
  // In this one nothing intercepts what it sends, which costs more than sending it.
  const page = await context.newPage()
  await page.goto(vdiskPage)
  await expect(uploads(page)).toContainText('Choose linux.raw again to continue.')
  const arrived = Number(await bar(page).getAttribute('aria-valuenow'))
  expect(arrived).toBeGreaterThan(0)
  expect(arrived).toBeLessThan(100)
  expect(await seriousProblems(page)).toEqual([])
  await button(page, 'Import image').click()
  await field(page, 'Image').setInputFiles(image)
  await expect(page.getByRole('dialog')).toContainText(`${arrived} % of this file arrived before.`)
  await page.keyboard.press('Escape')
  const other = path.join(folder, 'other.raw')
  writeFileSync(other, 'x')
  await continueWith(page, other)
  await expect(
    page.getByText('This is other.raw. Choose linux.raw, or discard this upload.', { exact: true }),
  ).toBeVisible()
  const continuedAt = page.waitForRequest((request) => request.headers()['upload-offset'] !== undefined, patience)
  await continueWith(page, image)
  // What had arrived of the last piece counts.
  const continued = Number((await continuedAt).headers()['upload-offset'])
  expect(continued).toBeGreaterThanOrEqual(offsets[leftAt - 1] ?? Number.NaN)
  await expect(page.getByText('linux.raw has arrived, and is being imported.', { exact: true })).toBeVisible(patience)
  const made = page
    .getByRole('list', { name: 'Versions' })
    .getByRole('listitem')
    .filter({ has: page.getByText('Version 2', { exact: true }) })
  await expect(made.getByText('test', { exact: true })).toBeVisible(patience)
  await expect(uploads(page)).toHaveCount(0, patience)
})

test('a file that is changed while it is sent stops the upload', async ({ page }) => {
  const changing = path.join(folder, 'changing.raw')
  copyFileSync(image, changing)
  await signInAs(page, site.edge.person)
  await page.goto(`/vdisks/${site.edge.tenant.vdiskId}`)
  await watchPieces(page, async (_offset, count) => {
    if (count === 2) appendFileSync(changing, 'x')
  })
  await beginUpload(page, changing)
  await expect(uploads(page)).toContainText('The browser could not read the file any more: it was changed')
  await button(page, 'Discard: changing.raw').click()
  await button(page, 'Discard changing.raw').click()
  await expect(uploads(page)).toHaveCount(0)
})

test('a session that ends stops an upload, and says so after the next sign-in', async ({ page, context }) => {
  await signInAs(page, site.edge.person)
  await page.goto(`/vdisks/${site.edge.tenant.vdiskId}`)
  await watchPieces(page, async (_offset, count) => {
    if (count === 2) await context.clearCookies()
  })
  await beginUpload(page)
  await expect(page).toHaveURL(/\/sign-in/)
  await signIn(page, site.edge.person)
  await expect(uploads(page)).toContainText('Your session ended while the file was sent. What arrived is kept.')
  await expect(uploads(page)).toContainText('Choose linux.raw again to continue.')
  await button(page, 'Discard: linux.raw').click()
  await button(page, 'Discard linux.raw').click()
  await expect(uploads(page)).toHaveCount(0)
})
