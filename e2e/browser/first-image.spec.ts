import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { makeExt, preparedFiles } from '../lib/images/image-files.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'

// The demo's own edge: its store takes an image, and its devices boot it.

const release = '6.1.0-1-simulated'
const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-e2e-'))
test.afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Until an edge has fetched and imported an image, and the next wave has booted, on a busy machine. */
const patience = { timeout: 80_000 }
const field = (page: Page, name: string) => page.getByRole('dialog').getByLabel(name, { exact: true })

/** Calls a procedure as the page does. */
async function ask<T>(page: Page, procedure: string, input: unknown): Promise<T> {
  const answer = await page.request.get(`/api/trpc/${procedure}?input=${encodeURIComponent(JSON.stringify(input))}`)
  expect(answer.status(), await answer.text()).toBe(200)
  return ((await answer.json()) as { result: { data: T } }).result.data
}

/** Gives the devices of the collection another vDisk. */
async function choose(page: Page, collection: string, vdisk: string): Promise<void> {
  await page.goto('/sites')
  await page.getByRole('link', { name: 'Demo site', exact: true }).click()
  await page
    .getByRole('row', { name: new RegExp(`^${collection} `) })
    .getByRole('button', { name: 'Edit' })
    .click()
  await field(page, 'vDisk').selectOption({ label: vdisk })
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await expect(page.getByRole('dialog')).toHaveCount(0)
}

/** The newest boot of each device that ended well, with its vDisk. */
async function bootedFrom(page: Page, vdiskName: string): Promise<string[]> {
  type Boot = { id: string; deviceName: string | null; vdisk: { name: string } | null }
  const { items } = await ask<{ items: Boot[] }>(page, 'boot.list', { outcome: 'ready', origin: 'simulated', limit: 6 })
  const names: string[] = []
  for (const { id } of items) {
    const { deviceName, vdisk } = await ask<Boot>(page, 'boot.get', { bootId: id })
    if (vdisk?.name === vdiskName && deviceName) names.push(deviceName)
  }
  return names
}

test('a first image is uploaded to the demo, becomes a version, and the devices of a collection boot it', async ({
  page,
}) => {
  test.setTimeout(240_000)
  const files = {
    ...preparedFiles,
    [`boot/vmlinuz-${release}`]: x86Kernel(release, Buffer.alloc(30_001, 'kernel')),
    [`boot/initrd.img-${release}`]: Buffer.alloc(20_003, 'initramfs'),
  }
  const image = makeExt(folder, 'first', files, ['-t', 'ext4'])
  await page.goto('/vdisks')
  await page.getByRole('button', { name: 'New vDisk' }).click()
  await field(page, 'Name').fill('First image')
  await page.getByRole('button', { name: 'Create vDisk' }).click()
  await page.getByRole('link', { name: 'First image' }).click()
  await page.getByRole('button', { name: 'Import image', exact: true }).click()
  await field(page, 'Image').setInputFiles(image)
  await field(page, 'After import').selectOption('released')
  await page.getByRole('dialog').getByRole('button', { name: 'Upload and import' }).click()
  const versions = page.getByRole('list', { name: 'Versions' })
  await expect(versions.getByText('default', { exact: true })).toBeVisible(patience)

  await choose(page, 'Lab', 'First image')
  await expect.poll(() => bootedFrom(page, 'First image'), patience).toContain('demo-04')
  await choose(page, 'Lab', 'Demo Linux')
})
