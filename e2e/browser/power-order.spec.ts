import { expect, test } from '@playwright/test'
import { ApiClient, required } from '../lib/api-client.ts'
import { bootTimeoutMs } from './boot-rows.ts'
import { demoSignIn } from './demo-sign-in.ts'

interface Device {
  id: string
  name: string
  lastBoot: { id: string; startedAt: string; outcome: string | null; simulated: boolean } | null
}

/** A wave starts each device anew so often at least: what is left of it has to be enough for an order. */
const waveMs = 20_000
const orderMs = 8_500

/** A simulated device that became ready a moment ago, so that no wave starts it while the order is under way. */
async function freshlyReady(api: ApiClient): Promise<Device> {
  let found: Device | undefined
  const hasTime = ({ lastBoot }: Device) =>
    lastBoot?.simulated === true &&
    lastBoot.outcome === 'ready' &&
    Date.now() - Date.parse(lastBoot.startedAt) < waveMs - orderMs
  await expect
    .poll(
      async () => {
        const { items } = await api.query<{ items: Device[] }>('device.list', {})
        found = items.find(hasTime)
        return found !== undefined
      },
      { timeout: bootTimeoutMs, intervals: [200] },
    )
    .toBe(true)
  if (!found) throw new Error('no device is ready')
  return found
}

test('a restart that was ordered is taken by the device, which boots again', async ({ page }) => {
  await page.goto('/devices')
  const { email, password } = demoSignIn()
  const api = await ApiClient.signIn(required('BOOTFARM_WEB_URL'), email, password)
  const { id, name, lastBoot } = await freshlyReady(api)
  await page.goto(`/devices/${id}`)
  await page.getByRole('button', { name: 'Restart' }).click()
  await page.getByRole('button', { name: `Restart ${name}` }).click()
  const note = page.getByRole('main').getByRole('status').filter({ hasText: 'Restart' })
  await expect(note).toContainText('was taken by the device', { timeout: 20_000 })

  const newest = page.getByRole('region', { name: 'Boots of this device' }).getByRole('row').nth(1)
  await expect(newest.getByRole('link')).not.toHaveAttribute('href', `/boots/${lastBoot?.id}`, {
    timeout: bootTimeoutMs,
  })
  await page.goto(`/boots/${lastBoot?.id}`)
  const facts = page.getByRole('region', { name: 'Facts' })
  await expect(facts.getByText(/^restart, \d\d:\d\d:\d\d$/)).toBeVisible()
})
