import type { EdgeClient } from '@bootfarm/api/testing/edge-client'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// Which edge keeps what a device writes. The test plays both edges; faults/homes-of-writes.test.ts uses real ones.

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('admin')
  await signInAs(page, tenant.person)
})

const panel = (page: Page) => page.getByRole('region', { name: 'Persistent-write location' })
const lastMove = (page: Page) => page.getByRole('status', { name: 'Last move' })
const whatHappens = (page: Page) => page.getByRole('dialog').getByRole('region', { name: 'Preview' })
const confirm = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
const open = (page: Page) => page.goto(`/devices/${tenant.rows.deviceIds[0]}`)

async function keepWrites(page: Page): Promise<void> {
  const { vdiskId } = tenant.rows
  const data = { vdiskId, revision: 1, class: 'private', limitBytes: null, full: 'stop' }
  const answer = await page.request.post('/api/trpc/vdisk.updateWriteCache', { data })
  expect(answer.status(), await answer.text()).toBe(200)
}

/**
 * Returns the write owner of the first device and the other edge, from the desired states of both; undefined stands for
 * the tenant's first edge.
 */
async function edges(second: EdgeClient): Promise<{ home: EdgeClient | undefined; other: string; name: string }> {
  const { devices, homeEdges = [] } = await tenant.state()
  const told = devices.find(({ id }) => id === tenant.rows.deviceIds[0])?.home
  const home = told === undefined ? undefined : homeEdges[told]
  const isSecond = home?.id === second.edgeId
  return {
    home: isSecond ? second : undefined,
    other: isSecond ? tenant.edgeId : second.edgeId,
    name: home?.name ?? '',
  }
}

async function endJob(edge: EdgeClient | undefined, state: 'done' | 'failed', message?: string): Promise<void> {
  const [job] = (await tenant.state(edge)).storeJobs ?? []
  const report = { id: job?.id ?? '', state, progressBytes: 0, totalBytes: 0 }
  await tenant.storeSays({ jobs: [{ ...report, ...(message ? { message } : {}) }] }, edge)
}

test('a site with one edge offers no choice of write owner; with two, none is chosen until something is kept', async ({
  page,
}) => {
  await open(page)
  await expect(page.getByRole('region', { name: 'Details', exact: true })).toBeVisible()
  await expect(panel(page)).toHaveCount(0)
  const second = await tenant.secondEdge('edge-second')
  await page.reload()
  await expect(panel(page)).toContainText('None. Writes are discarded at reboot.')
  await expect(panel(page).getByRole('button')).toHaveCount(0)
  await keepWrites(page)
  const { name } = await edges(second)
  await page.reload()
  await expect(panel(page)).toContainText(`${name}, since`)
  await expect(panel(page)).toContainText('No stored writes are known.')
})

test('a move of write owner is shown while it runs, refused by the edge, cancelled and finished, across reloads', async ({
  page,
}) => {
  const second = await tenant.secondEdge('edge-second')
  await keepWrites(page)
  const { home, other, name } = await edges(second)
  const otherName = other === second.edgeId ? 'edge-second' : 'edge-1'
  await open(page)
  const move = async () => {
    await panel(page).getByRole('button', { name: 'Move', exact: true }).click()
    await expect(whatHappens(page)).toContainText(`${name} is asked to release pc-01`)
    await expect(whatHappens(page)).toContainText('If it does not, nothing is lost.')
  }
  await move()
  expect(await seriousProblems(page)).toEqual([])
  await confirm(page, 'Move')
  await expect(lastMove(page)).toContainText(`Waiting for ${name} to release the device to ${otherName}`)
  await page.reload()
  await expect(lastMove(page)).toContainText('Waiting for')
  await expect(panel(page).getByRole('button', { name: 'Move', exact: true })).toHaveCount(0)
  await endJob(home, 'failed', 'it still keeps writes of the device')
  await expect(lastMove(page)).toContainText('did not release the device. Nothing was changed.')
  await page.reload()
  await expect(lastMove(page)).toContainText('it still keeps writes of the device')
  await move()
  await confirm(page, 'Move')
  await lastMove(page).getByRole('button', { name: 'Cancel move' }).click()
  await expect(lastMove(page)).toContainText('was cancelled')
  await move()
  await confirm(page, 'Move')
  await expect(lastMove(page)).toContainText('Waiting for')
  await endJob(home, 'done')
  await expect(panel(page)).toContainText(`${otherName}, since`)
  await expect(lastMove(page)).toHaveCount(0)
})

test('removing an edge discards the writes that it keeps, after a warning', async ({ page }) => {
  const second = await tenant.secondEdge('edge-second')
  await keepWrites(page)
  const { home, name } = await edges(second)
  const edgeId = home?.edgeId ?? tenant.edgeId
  const seen = await page.request.get(`/api/trpc/edge.get?input=${encodeURIComponent(JSON.stringify({ edgeId }))}`)
  const { revision } = (await seen.json()).result.data
  const answer = await page.request.post('/api/trpc/edge.revoke', { data: { edgeId, revision, name } })
  expect(answer.status(), await answer.text()).toBe(200)
  await open(page)
  await expect(panel(page)).toContainText('removed')
  await panel(page).getByRole('button', { name: 'Move', exact: true }).click()
  await expect(whatHappens(page)).toContainText(`${name} was removed and cannot be contacted.`)
  await expect(whatHappens(page)).toContainText('Anything stored there is permanently lost.')
  await confirm(page, 'Discard and move')
  await expect(panel(page)).toHaveCount(0)
})
