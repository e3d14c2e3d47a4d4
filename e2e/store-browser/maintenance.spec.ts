import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, type Locator, type Page, test } from '@playwright/test'
import { seriousProblems } from '../browser/axe.ts'
import { signInAs } from '../browser/demo-sign-in.ts'
import { required } from '../lib/control-plane/api-client.ts'
import { StoreEdge } from '../lib/edge/store-edge.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

// A real edge program with a real store does the work; its devices are simulated.

test.use({ storageState: { cookies: [], origins: [] } })

/** Until an edge has done something and reported it, on a busy machine. */
const patience = { timeout: 60_000 }
const [writer, tester, production] = [0, 1, 2]
const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-e2e-'))
let site: StoreEdge
let device: RunningProcess | undefined

test.beforeAll(async () => {
  site = await StoreEdge.start(
    {
      databaseUrl: readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim(),
      apiUrl: required('BOOTFARM_API_URL'),
      webUrl: required('BOOTFARM_WEB_URL'),
    },
    folder,
  )
})
test.afterAll(async () => {
  await device?.stop()
  await site?.edge.stop()
  rmSync(folder, { recursive: true, force: true })
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const field = (page: Page, name: string) => page.getByRole('dialog').getByLabel(name, { exact: true })
const confirm = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
const version = (page: Page, number: number): Locator =>
  page
    .getByRole('list', { name: 'Versions' })
    .getByRole('listitem')
    .filter({ has: page.getByText(`Version ${number}`, { exact: true }) })
/** The tag beside its number. */
const access = (page: Page, number: number, word: string) => version(page, number).getByText(word, { exact: true })

/** The edge gets the change, the device boots accordingly, and the page reports that it runs. */
async function boots(page: Page, index: number, number: number): Promise<RunningProcess> {
  await expect.poll(() => site.versionFor(index), patience).toBe(number)
  const booted = site.powerOn(index)
  device = booted
  const runs = new RegExp(`Running on [^;]*pc-0${index + 1}`)
  await expect(version(page, number)).toContainText(runs, patience)
  return booted
}

async function setType(page: Page, index: number, type: string): Promise<void> {
  await page.goto(`/devices/${site.edge.tenant.deviceIds[index]}`)
  await button(page, 'Edit').click()
  await field(page, 'Type').selectOption(type)
  await confirm(page, 'Save')
  await expect(page.getByRole('dialog')).toHaveCount(0)
}

test('an image is imported, changed by a device, sealed, tested, promoted, reverted and discarded from the page', async ({
  page,
}) => {
  test.setTimeout(300_000)
  const vdiskPage = `/vdisks/${site.edge.tenant.vdiskId}`
  await signInAs(page, site.edge.person)
  await page.goto(vdiskPage)
  await button(page, 'Import image').click()
  await field(page, 'Image from').selectOption('a file in the edge’s store')
  await field(page, 'Image').fill(site.imagePath)
  await confirm(page, 'Import')
  await expect(access(page, 2, 'test')).toBeVisible(patience)
  await button(page, 'Promote: version 2').click()
  await confirm(page, 'Promote now')
  await expect(access(page, 2, 'default')).toBeVisible()

  await setType(page, writer, 'maintenance')
  await setType(page, tester, 'test')
  await page.goto(vdiskPage)
  await button(page, 'New version: version 2').click()
  await expect(field(page, 'Maintenance device')).toContainText('pc-01')
  await confirm(page, 'Start maintenance')
  await expect(version(page, 3)).toContainText('Written by pc-01')

  // While its device is there it is not sealed; other devices boot what they booted before.
  const writing = await boots(page, writer, 3)
  expect(site.layers()).toHaveLength(1)
  expect([await site.versionFor(tester), await site.versionFor(production)]).toEqual([2, 2])
  await button(page, 'Seal: version 3').click()
  await expect(page.getByRole('dialog')).toContainText('pc-01 is still running this version. Shut it down first')
  await confirm(page, 'Seal version 3')
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('pc-01 still runs from version 3')
  expect(await seriousProblems(page)).toEqual([])
  await page.keyboard.press('Escape')
  await writing.stop()
  await expect(version(page, 3)).not.toContainText('Running on', patience)
  await button(page, 'Seal: version 3').click()
  await confirm(page, 'Seal version 3')
  await expect(access(page, 3, 'test')).toBeVisible(patience)
  expect(site.layers()).toEqual([])

  await (await boots(page, tester, 3)).stop()
  expect(await site.versionFor(production)).toBe(2)
  await button(page, 'Promote: version 3').click()
  await expect(page.getByRole('dialog').getByRole('region', { name: 'Preview' })).toContainText(
    'Production devices boot version 3 instead of version 2.',
  )
  await confirm(page, 'Promote now')
  await expect(access(page, 3, 'default')).toBeVisible()
  await (await boots(page, production, 3)).stop()
  await button(page, 'Roll back to this version: version 2').click()
  await confirm(page, 'Roll back to version 2')
  await expect(access(page, 2, 'default')).toBeVisible()
  await (await boots(page, production, 2)).stop()

  await button(page, 'New version: version 2').click()
  await confirm(page, 'Start maintenance')
  await expect(version(page, 4)).toContainText('Written by pc-01')
  await (await boots(page, writer, 4)).stop()
  await expect(version(page, 4)).not.toContainText('Running on', patience)
  expect(site.layers()).toHaveLength(1)
  await button(page, 'Discard: version 4').click()
  await confirm(page, 'Discard version 4')
  await expect(version(page, 4)).toHaveCount(0)
  await expect.poll(() => site.layers(), patience).toEqual([])
})
