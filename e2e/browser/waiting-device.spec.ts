import { randomUUID } from 'node:crypto'
import type { EdgeClient } from '@bootfarm/api/testing/edge-client'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// A device whose writes are kept at an absent edge. The test plays both edges; uplink/waiting-devices.test.ts uses real
// ones.

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
let second: EdgeClient
const notice = (page: Page) => page.getByRole('region', { name: 'What the device waits for' })

test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('operator')
  second = await tenant.secondEdge('edge-second')
  await signInAs(page, tenant.person)
})

/** Belongs to a running device; the first edge keeps what it writes. */
function running() {
  const writeCache = { usedBytes: 4096, sizeBytes: 2 ** 31, atUs: 20_000_000, class: 'edge' as const }
  const guest = { kernelStartUs: 4_000_000, steps: [], writeCache }
  return { id: randomUUID(), startedUnixMs: Date.now() - 75_000, guest }
}

test('a device that another edge sent back is shown as waiting, with the edge it waits for and the remedy, until it continues', async ({
  page,
}) => {
  const boot = running()
  await tenant.beats()
  await tenant.report(boot)
  const device = `/devices/${tenant.rows.deviceIds[0]}`
  const state = (word: string) => page.getByRole('main').getByText(word, { exact: true }).first()
  await page.goto(device)
  await expect(state('Running')).toBeVisible()
  await expect(notice(page)).toHaveCount(0)

  // Open pages update by themselves.
  await tenant.tellsWaiting(second, boot)
  await expect(notice(page)).toContainText('the only edge with its writes')
  await expect(notice(page)).toContainText('edge-second cannot serve the disk without the writes')
  await expect(notice(page)).toContainText('Its writes since the last start are lost')
  await expect(state('Waiting')).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await page.goto(`/boots/${boot.id}`)
  await expect(notice(page)).toContainText('edge-second cannot serve the disk without the writes')
  expect(await seriousProblems(page)).toEqual([])

  await page.goto('/devices')
  const row = page.getByRole('row').filter({ hasText: tenant.rows.macs[0] ?? '' })
  await expect(row.getByText('Waiting', { exact: true })).toBeVisible()
  await expect(row.getByText(/^blocked by /)).toBeVisible()
  await page.goto('/boots')
  await expect(page.getByRole('main').getByText(/^blocked by /)).toBeVisible()

  await page.goto(device)
  await expect(notice(page)).toBeVisible()
  await tenant.beats()
  await tenant.report({ ...boot, revision: 9, resumedUs: 60_000_000 })
  await expect(notice(page)).toHaveCount(0)
  await expect(state('Running')).toBeVisible()
})

test('a device that has lost its disk is listed until it takes an order to restart, which its page and its row give', async ({
  page,
}) => {
  const outcome = { kind: 'failed', phase: 'stage2', cause: 'write_cache_lost' } as const
  const boot = { id: randomUUID(), startedUnixMs: Date.now() - 75_000, outcome }
  const lost = { reason: 'cache_lost', atUs: 30_000_000 } as const
  await tenant.beats()
  await tenant.report({ ...boot, lost })
  await page.goto('/')
  const banner = page.getByRole('region', { name: 'Devices without their disk' })
  await expect(banner).toContainText('1 device has lost its disk for good and waits for a restart')
  expect(await seriousProblems(page)).toEqual([])
  await banner.getByRole('link', { name: '1 device' }).click()

  await expect(page.getByLabel('Waits for')).toHaveValue('lost_disk')
  const rows = page
    .getByRole('table', { name: 'Devices' })
    .getByRole('row')
    .filter({ has: page.getByRole('cell') })
  await expect(rows).toHaveCount(1)
  await expect(rows.getByText('Waiting', { exact: true })).toBeVisible()
  await expect(rows.getByText('lost its disk')).toBeVisible()
  await expect(rows.getByRole('button', { name: /^Power of / })).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await rows.getByRole('link').first().click()

  await expect(notice(page)).toContainText('has lost its writes. It waits to be restarted.')
  expect(await seriousProblems(page)).toEqual([])
  await page.getByRole('button', { name: 'Restart', exact: true }).click()
  await page.getByRole('button', { name: 'Restart pc-01' }).click()
  await expect(page.getByText(/^Sent a restart order to /)).toBeVisible()
  const [order] = (await tenant.state()).powerOrders ?? []
  expect(order).toMatchObject({ order: 'restart', mac: tenant.rows.macs[0] })
  await tenant.report({ ...boot, revision: 9, lost: { ...lost, powerOrderId: order?.id } })
  await expect(notice(page)).toHaveCount(0)
  await page.goto('/devices?waits=lost_disk')
  await expect(page.getByText('No devices match these filters.')).toBeVisible()
})

test('if only its write owner is unreachable, its pages show that', async ({ page }) => {
  const boot = running()
  await tenant.report(boot)
  await page.goto(`/devices/${tenant.rows.deviceIds[0]}`)
  await expect(notice(page)).toContainText('which is offline')
  await expect(notice(page)).toContainText('has never reported')
  await page.goto(`/boots/${boot.id}`)
  await expect(notice(page)).toContainText('which is offline')
  await tenant.beats()
  await page.reload()
  await expect(page.getByRole('region', { name: 'Details', exact: true })).toBeVisible()
  await expect(notice(page)).toHaveCount(0)
})
