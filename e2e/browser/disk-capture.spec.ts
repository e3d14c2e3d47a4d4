import { randomUUID } from 'node:crypto'
import { bootWith } from '@bootfarm/api/testing/edge-client'
import type { StoreJobReport } from '@bootfarm/proto/uplink'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// The capture of a device's disk. The test plays the edge and the device; uplink/disk-captures.test.ts has real ones.

test.use({ storageState: { cookies: [], origins: [] } })

/** The job that takes the steps runs every five seconds. */
const patience = { timeout: 30_000 }
const diskSize = 64 * 1024 ** 2
const root = Buffer.alloc(32, 3).toString('base64')
let tenant: Tenant

test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const dialog = (page: Page) => page.getByRole('dialog')
const field = (page: Page, name: string) => dialog(page).getByLabel(name, { exact: true })
const status = (page: Page) => page.getByRole('status', { name: 'Capture', exact: true })

/** The edge ends a job of this kind once it has one. */
async function end(kind: 'import' | 'seal', more: Partial<StoreJobReport> = {}): Promise<string> {
  let ended = ''
  await expect
    .poll(async () => {
      const job = (await tenant.state()).storeJobs?.find((one) => one.kind === kind)
      if (!job?.versionId) return false
      ended = job.versionId
      const made = {
        versionId: ended,
        root,
        counter: 4,
        sizeBytes: diskSize,
        kernel: { sha256: 'ab'.repeat(32), sizeBytes: 9 },
      }
      const done = { id: job.id, state: 'done' as const, progressBytes: 9, totalBytes: 9, made }
      await tenant.storeSays({ jobs: [Object.assign(done, more)] })
      return true
    }, patience)
    .toBe(true)
  return ended
}

/** The edge holds a version with a kernel, and says so. */
async function holdBootVersion(page: Page): Promise<void> {
  const { vdiskId } = tenant.rows
  const data = { vdiskId, edgeId: tenant.edgeId, sourcePath: 'imports/linux.raw' }
  const answer = await page.request.post('/api/trpc/version.import', { data })
  expect(answer.status(), await answer.text()).toBe(200)
  const versionId = await end('import')
  const sizes = { state: 'present' as const, ownBytes: 5, sharedBytes: 7, reclaimableBytes: 3 }
  await tenant.storeSays({ inventory: { scan: 1, isLast: true, versions: [{ versionId, root, ...sizes }] } })
}

async function begin(page: Page): Promise<void> {
  await page.goto(`/devices/${tenant.rows.deviceIds[0]}`)
  await button(page, 'Capture disk').click()
  await field(page, 'Kernel and initramfs of').selectOption({ index: 1 })
  await field(page, 'Name of the new vDisk').fill('Captured')
  await expect(field(page, 'Version')).toContainText('version 2')
  expect(await seriousProblems(page)).toEqual([])
  await dialog(page).getByRole('button', { name: 'Capture disk', exact: true }).click()
  await expect(dialog(page)).toHaveCount(0)
}

/** What the device is to boot; its boots begin a minute apart. */
async function boots(index: number) {
  const [mac = ''] = tenant.rows.macs
  const device = (await tenant.state()).devices.find((one) => one.mac === mac)
  const { id: vdiskId = '' } =
    (await tenant.state()).vdisks.find(({ versions }) => versions.some(({ id }) => id === device?.versionId)) ?? {}
  return {
    id: randomUUID(),
    mac,
    vdiskId,
    versionId: device?.versionId ?? '',
    startedUnixMs: Date.now() - 300_000 + index * 60_000,
  }
}

test('a disk is captured from the device’s page: its boots are asked for, followed, and end in a version', async ({
  page,
}) => {
  test.setTimeout(180_000)
  await holdBootVersion(page)
  await begin(page)
  await expect(status(page)).toContainText('makes an empty disk')
  await expect(button(page, 'Capture disk')).toHaveCount(0)
  await end('import')
  await expect(status(page)).toContainText('Its first boot says how large the disk is', patience)

  const several = 'no_capture: name one of 2 disks: sda nvme0n1'
  await tenant.report({
    ...(await boots(0)),
    outcome: { kind: 'failed', phase: 'stage2', cause: 'guest_reported_failure', text: several },
  })
  await expect(status(page)).toContainText('has several disks', patience)
  await page.getByLabel('Disk', { exact: true }).selectOption('nvme0n1')
  await button(page, 'Capture this disk').click()
  await end('import')
  await expect(status(page)).toContainText('Boot', patience)
  const size = `no_capture: nvme0n1 has ${diskSize} bytes, the version 1048576`
  await tenant.report({
    ...(await boots(1)),
    outcome: { kind: 'failed', phase: 'stage2', cause: 'guest_reported_failure', text: size },
  })
  await expect(status(page)).toContainText('makes an empty disk', patience)
  await end('import')
  await expect(status(page)).toContainText('Waiting for', patience)

  const guest = (usedBytes: number) => ({
    kernelStartUs: 1,
    steps: [],
    writeCache: { usedBytes, sizeBytes: diskSize, atUs: 10 },
  })
  const copying = await boots(2)
  await tenant.reportGoingOn({ ...copying, guest: guest(diskSize / 4) })
  await expect(page.getByRole('progressbar', { name: 'Copy of the disk' })).toHaveAttribute(
    'aria-valuenow',
    '25',
    patience,
  )
  expect(await seriousProblems(page)).toEqual([])
  await tenant.report({ ...bootWith(copying), ...copying, revision: 2 })
  await expect(status(page)).toContainText('Everything is copied', patience)
  const sizes = { state: 'present' as const, ownBytes: 5, sharedBytes: 7, reclaimableBytes: 3 }
  const layer = { versionId: copying.versionId, isLayer: true, isWritten: false, ...sizes }
  await tenant.storeSays({ inventory: { scan: 2, isLast: true, versions: [layer] } })
  await end('seal')
  await expect(status(page)).toContainText('The disk is captured as version', patience)
  await page.getByRole('link', { name: 'Captured, version' }).click()
  await expect(page.getByRole('list', { name: 'Versions' }).getByRole('listitem')).toHaveCount(1)
})

test('a capture is cancelled, and the device is as before', async ({ page }) => {
  test.setTimeout(120_000)
  await holdBootVersion(page)
  await begin(page)
  await end('import')
  await expect(status(page)).toContainText('Its first boot says how large the disk is', patience)
  await button(page, 'Cancel capture').click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel capture', exact: true }).click()
  await expect(status(page)).toContainText('The capture was cancelled. Nothing of it is left.', patience)
  await expect(button(page, 'Capture disk')).toBeVisible()
})
