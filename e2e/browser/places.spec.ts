import { randomUUID } from 'node:crypto'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Locator, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootRows } from './boot-rows.ts'
import { signInAs } from './demo-sign-in.ts'

// Pages of a farm, a site, a collection and an edge; the test plays the edge.

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('viewer')
  await signInAs(page, tenant.person)
})

const mib = 1024 ** 2
const minuteMs = 60_000

/** Three hours of load, the newest minute first; the edge was away for ten minutes an hour ago. */
function plantLoad(): Promise<unknown> {
  const { organizationId } = tenant.rows
  const newest = Math.floor(Date.now() / minuteMs) * minuteMs
  const data = Array.from({ length: 180 }, (_, minutes) => ({
    organizationId,
    edgeId: tenant.edgeId,
    stepMinutes: 1,
    at: new Date(newest - minutes * minuteMs),
    coveredMs: 60_000,
    streamsMs: 12 * 60_000,
    bootingMs: 3 * 60_000,
    streamBytes: 600 * mib + minutes * mib,
    fileBytes: 60 * mib,
    reads: 6000,
    coldReads: 600,
    coldUs: 600 * 4_000,
    processorMs: 120_000,
    busyMs: 30_000,
    devicesPeak: 14,
    sentPeak: 30 * mib,
    sentPeakDevices: 14,
    busyPeak: 0.5,
    busyPeakDevices: 14,
    memoryTotalBytes: 8192 * mib,
    memoryAvailableBytes: 6144 * mib,
    fileCacheBytes: 4096 * mib,
    storeTotalBytes: 400_000 * mib,
    storeFreeBytes: 300_000 * mib,
  }))
  const quarter = { ...data[0], stepMinutes: 15, at: new Date(Math.floor(newest / (15 * minuteMs)) * 15 * minuteMs) }
  const heard = data.filter((_, minutes) => minutes < 60 || minutes >= 70)
  return tenant.inDatabase((db) => db.edgeLoad.createMany({ data: [...heard, quarter as (typeof data)[number]] }))
}

const chart = (page: Page, title: string) => page.getByRole('figure', { name: title, exact: true })
const instant = (of: Locator) => of.getByRole('slider')

test('an edge shows its load over time, by pointer, by keys and as a table, and what it carries', async ({ page }) => {
  await plantLoad()
  await page.goto(`/edges/${tenant.edgeId}`)
  const load = page.getByRole('region', { name: 'Load', exact: true })
  await expect(load).toContainText('Carries about 8 more devices.')
  await expect(load).toContainText(/50\s% of its processors with 14 devices/)
  await load.getByRole('radio', { name: 'Last hour' }).click()
  const throughput = chart(page, 'Throughput')
  await expect(throughput.locator('canvas')).toBeVisible()
  await expect(throughput).toContainText(/Disk stream\s*10\.\d\sMiB\/s/)
  await expect(chart(page, 'Cache hits')).toContainText(/Hits\s*90\s%/)
  await expect(chart(page, 'Disk latency')).toContainText(/Mean\s*4\.00\sms/)
  await expect(chart(page, 'Processors')).toContainText(/Mean\s*25\s%\s*Peak\s*50\s%/)

  // The arrow keys move the cursor, and say what is there.
  await instant(throughput).focus()
  const newest = await instant(throughput).getAttribute('aria-valuetext')
  for (let step = 0; step < 30; step += 1) await page.keyboard.press('ArrowLeft')
  await expect(instant(throughput)).not.toHaveAttribute('aria-valuetext', newest ?? '')
  const values = /: Disk stream 10\.\d\sMiB\/s, Boot files 1\.00\sMiB\/s/
  await expect(instant(throughput)).toHaveAttribute('aria-valuetext', values)

  // Zoom by key, and by a drag with the pointer; both end with a button.
  await page.keyboard.press('+')
  const reset = load.getByRole('button', { name: 'Reset zoom' })
  await expect(reset).toBeVisible()
  await reset.click()
  await expect(reset).toHaveCount(0)
  const box = (await throughput.locator('.u-over').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 })
  await page.mouse.up()
  await expect(reset).toBeVisible()
  await reset.click()

  await throughput.getByRole('button', { name: 'Throughput as a table' }).click()
  const table = throughput.getByRole('table', { name: 'Throughput, as a table' })
  await expect(table.getByRole('columnheader')).toHaveText(['Time', 'Disk stream', 'Boot files', 'Peak'])
  await expect(table.getByRole('row').nth(1)).toContainText(/10\.0\sMiB\/s/)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await seriousProblems(page)).toEqual([])
  }
  await page.setViewportSize({ width: 390, height: 844 })
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
})

test('tiles of a farm, a site and a collection lead to as many boots as they count', async ({ page }) => {
  const { farmId, siteId, collectionId, macs } = tenant.rows
  for (const mac of macs.slice(0, 4)) await tenant.report({ id: randomUUID(), mac })
  await plantLoad()
  for (const path of [`/farms/${farmId}`, `/sites/${siteId}`, `/collections/${collectionId}`]) {
    await page.goto(path)
    const tile = page.getByRole('list', { name: 'Figures' }).getByRole('link', { name: /^Ready/ })
    await expect(tile).toContainText(/Ready \(24\sh\)\s*4/)
    await expect(page.getByRole('region', { name: 'Latest boots' }).getByRole('row')).toHaveCount(5)
    expect(await seriousProblems(page), path).toEqual([])
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBe(390)
    await page.setViewportSize({ width: 1280, height: 800 })
    await tile.click()
    await expect(page).toHaveURL(/\/boots\?.*outcome=ready/)
    await expect(bootRows(page)).toHaveCount(4)
  }
  await page.goto(`/sites/${siteId}`)
  await expect(chart(page, 'Throughput')).toContainText(/Disk stream\s*1\d\.\d\sMiB\/s/)
  await page.getByRole('table', { name: 'Collections of this site' }).getByRole('link').first().click()
  await expect(page).toHaveURL(`/collections/${collectionId}`)
  await page.getByRole('link', { name: 'All devices' }).click()
  await expect(page).toHaveURL(`/devices?collection=${collectionId}`)
})
