import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { expect, test } from '../lib/lab/page-test.ts'
import { bootTimeoutMs } from './boot-rows.ts'
import { demoSignIn } from './demo-sign-in.ts'

interface Device {
  id: string
  name: string
  lastBoot: { id: string; startedAt: string; outcome: string | null; simulated: boolean } | null
}

interface Boot {
  id: string
  takenPowerOrder: { order: string } | null
}

/** A wave restarts each device at least this often; enough of that time must be left for an order. */
const waveMs = 30_000
const orderMs = 15_000

/** A simulated device. */
async function anyDevice(api: ApiClient): Promise<Device> {
  const { items } = await api.query<{ items: Device[] }>('device.list', {})
  const found = items.find(({ lastBoot }) => lastBoot?.simulated)
  if (!found) throw new Error('no simulated device has booted')
  return found
}

/** Its boot became ready a moment ago, so no wave restarts it while an order is pending. */
async function becomesReady(api: ApiClient, deviceId: string): Promise<void> {
  const isFresh = async () => {
    const { items } = await api.query<{ items: Device[] }>('device.list', {})
    const boot = items.find(({ id }) => id === deviceId)?.lastBoot
    return boot?.outcome === 'ready' && Date.now() - Date.parse(boot.startedAt) < waveMs - orderMs
  }
  await expect.poll(isFresh, { timeout: bootTimeoutMs, intervals: [200] }).toBe(true)
}

test('an ordered restart is taken by the device, which boots again', async ({ page }) => {
  const { email, password } = demoSignIn()
  const api = await ApiClient.signIn(required('BOOTFARM_WEB_URL'), email, password)
  const { id, name } = await anyDevice(api)
  // Opened first, so that the order has all of its time however long the page takes.
  await page.goto(`/devices/${id}`)
  await expect(page.getByRole('heading', { name, exact: true })).toBeVisible()
  await becomesReady(api, id)
  await page.getByRole('button', { name: 'Restart' }).click()
  await page.getByRole('button', { name: `Restart ${name}` }).click()
  const note = page.getByRole('main').getByRole('status').filter({ hasText: 'Restart' })
  await expect(note).toContainText('accepted by the device')

  // If a wave restarted the device in between, a later boot took the order.
  const { items } = await api.query<{ items: Boot[] }>('boot.list', { deviceId: id })
  const taking = items.find(({ takenPowerOrder }) => takenPowerOrder?.order === 'restart')
  expect(taking?.id).toBeDefined()
  const newest = page.getByRole('region', { name: 'Boots of this device' }).getByRole('row').nth(1)
  await expect(newest.getByRole('link')).not.toHaveAttribute('href', `/boots/${taking?.id}`, {
    timeout: bootTimeoutMs,
  })
  await page.goto(`/boots/${taking?.id}`)
  const facts = page.getByRole('region', { name: 'Details', exact: true })
  await expect(facts.getByText(/^restart, \d\d:\d\d:\d\d$/)).toBeVisible()
})
