import path from 'node:path'
import type { EdgeClient } from '@bootfarm/api/testing/edge-client'
import { listTestReleases } from '@bootfarm/api/testing/releases'
import { required } from '../lib/control-plane/api-client.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

// How a release reaches the edges of a farm. The test plays the edges; uplink/rollouts.test.ts uses real ones.

test.use({ storageState: { cookies: [], origins: [] } })

const version = '0.2.0'
let tenant: Tenant
let canary: EdgeClient
let second: EdgeClient

test.beforeEach(async ({ page }) => {
  listTestReleases(path.join(required('BOOTFARM_DATA'), 'updates'), [version])
  tenant = await Tenant.create('admin')
  canary = (await tenant.secondSite('Aachen')).edge
  second = (await tenant.secondSite('Bonn')).edge
  await signInAs(page, tenant.person)
})

const status = (page: Page, of: string) =>
  page.getByRole('table', { name: 'Edges in this rollout' }).getByRole('row').filter({ hasText: of })

/** Repeats what the edge says of its order, as its heartbeats do, until the page shows it. */
async function says(edge: EdgeClient, state: string, { cause, shown }: { cause?: string; shown: () => Promise<void> }) {
  await expect
    .poll(
      async () => {
        const { release } = await tenant.state(edge)
        if (!release) return 'no order'
        const runs = state === 'healthy' ? { agentVersion: version } : {}
        await edge.heartbeat({ ...runs, update: { ...release, state, ...(cause ? { cause } : {}) } })
        return shown().then(
          () => 'shown',
          (error: Error) => error.message,
        )
      },
      { timeout: 180_000 },
    )
    .toBe('shown')
}

test('a rollout starts with the canary, pauses when it fails, and reaches the next wave when a person starts it', async ({
  page,
}) => {
  await page.goto('/edges')
  await page.getByRole('link', { name: 'Releases' }).click()
  await expect(page.getByText('No rollouts yet.')).toBeVisible()
  await expect(page.getByRole('table', { name: 'Available releases' })).toContainText(version)
  await page.getByRole('link', { name: 'New rollout' }).click()
  await expect(page.getByLabel('Version')).toHaveValue(version)
  await expect(page.getByLabel('Wave of Aachen')).toHaveValue('0')
  await page.getByLabel(/^Wave of Site of/).selectOption('Not included')
  await page.getByLabel('The next wave starts').selectOption('when someone starts it')
  await page.getByLabel('Healthy for, in minutes').fill('0')
  expect(await seriousProblems(page)).toEqual([])
  await page.getByRole('button', { name: 'Start rollout' }).click()

  await expect(page.getByRole('heading', { name: `Rollout of ${version}` })).toBeVisible()
  const waves = page.getByRole('table', { name: 'Waves' }).getByRole('row')
  await expect(waves).toHaveCount(3)
  await expect(waves.nth(1)).toContainText('Aachen')
  await expect(waves.nth(2)).toContainText('Bonn')
  const visible = { timeout: 500 }
  await says(canary, 'fetching', {
    shown: () => expect(status(page, 'Aachen')).toContainText('Being fetched', visible),
  })
  await expect(status(page, 'Bonn')).toContainText('Waiting')

  await says(canary, 'failed', {
    cause: 'ended',
    shown: () => expect(page.getByText('This rollout paused by itself')).toBeVisible(visible),
  })
  await expect(status(page, 'Aachen')).toContainText('The program ended while it was on probation.')
  expect(await seriousProblems(page)).toEqual([])
  await page.getByRole('button', { name: 'Resume' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('1 edge does not run the release')
  await dialog.getByRole('button', { name: 'Resume rollout' }).click()
  await expect(dialog).toHaveCount(0)

  await says(canary, 'healthy', {
    shown: () => expect(page.getByRole('button', { name: 'Start next wave' })).toBeVisible(visible),
  })
  await expect(status(page, 'Aachen')).toContainText('Updated')
  await page.getByRole('button', { name: 'Start next wave' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Start next wave' }).click()
  await says(second, 'healthy', {
    shown: async () => {
      const { release } = await tenant.state(canary)
      if (release) await canary.heartbeat({ agentVersion: version, update: { ...release, state: 'healthy' } })
      await expect(page.getByText('Done', { exact: true })).toBeVisible(visible)
    },
  })
  await expect(page.getByRole('button', { name: 'Cancel rollout' })).toHaveCount(0)
  await page.goto('/edges/rollouts')
  await expect(page.getByRole('table', { name: 'Rollouts' })).toContainText('2 edges: 2 updated')
})

test('cancelling says which edges keep the release', async ({ page }) => {
  await page.goto('/edges/rollouts/new')
  await page.getByLabel(/^Wave of Site of/).selectOption('Not included')
  await page.getByRole('button', { name: 'Start rollout' }).click()
  const visible = { timeout: 500 }
  await says(canary, 'healthy', {
    shown: () => expect(status(page, 'Aachen')).toContainText('Updated', visible),
  })
  await page.getByRole('button', { name: 'Cancel rollout' }).click()
  const dialog = page.getByRole('alertdialog')
  await expect(dialog).toContainText(`1 edge with ${version} keeps it.`)
  await dialog.getByRole('button', { name: 'Cancel rollout' }).click()
  await expect(page.getByText('Cancelled', { exact: true })).toBeVisible()
  await expect(status(page, 'Bonn')).toContainText('The rollout was cancelled before it ran the release.')
  expect((await tenant.state(canary)).release?.version).toBe(version)
  expect((await tenant.state(second)).release).toBeUndefined()
})
