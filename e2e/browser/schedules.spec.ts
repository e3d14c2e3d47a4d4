import { randomUUID } from 'node:crypto'
import { phase, Tenant } from '../lib/control-plane/tenant.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] }, timezoneId: 'Europe/London' })

let tenant: Tenant
test.beforeEach(async ({ page }) => {
  tenant = await Tenant.create('operator')
  await signInAs(page, tenant.person)
})

const instants = (page: Page) => page.getByRole('region', { name: 'Next runs' })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

async function makeSchedule(page: Page): Promise<void> {
  await page.goto('/schedules')
  await expect(page.getByText('No schedules yet.')).toBeVisible()
  await page.getByRole('link', { name: 'New schedule' }).click()
  await button(page, 'Create schedule').click()
  await expect(page.getByRole('alert').filter({ hasText: 'Enter a name for the schedule.' })).toBeVisible()
  await page.getByLabel('Name').fill('First lesson')
  await page.getByLabel('Time zone').selectOption('America/New_York')
  await page.getByLabel('Repeat').selectOption('Cron expression')
  await page.getByLabel('Expression').fill('99 2 * * *')
  await expect(instants(page).getByRole('alert')).toContainText('minute: 99')
  await page.getByLabel('Expression').fill('30 2 8-14 3 0')
  await expect(instants(page)).toContainText('This local time does not exist that day')
  await expect(instants(page).getByRole('listitem').first()).toContainText('your time')
  await page.getByLabel('Repeat').selectOption('Weekly')
  await button(page, 'Friday').click()
  await page.getByLabel('Collection').selectOption('Lab')
  await expect(instants(page)).toContainText('6 devices')
  await expect(instants(page)).toContainText('02:30 at 03:00')
  expect(await seriousProblems(page)).toEqual([])
  await button(page, 'Create schedule').click()
  await expect(page.getByRole('heading', { level: 1, name: 'First lesson' })).toBeVisible()
}

test('a schedule is created with its next runs in view, and its edge receives it', async ({ page }) => {
  await makeSchedule(page)
  await expect(page.getByText('Mon–Thu at 06:30, America/New York')).toBeVisible()
  await expect(instants(page).getByRole('listitem')).toHaveCount(10)
  const { schedules = [] } = await tenant.state()
  expect(schedules).toMatchObject([{ action: 'power_on', ratePerMinute: 60, devices: [0, 1, 2, 3, 4, 5] }])
  await button(page, 'Disable').click()
  await expect(page.getByText('This schedule is disabled.')).toBeVisible()
  expect((await tenant.state()).schedules).toBeUndefined()
  await page.getByRole('link', { name: 'Edit', exact: true }).click()
  await page.getByLabel('Name').fill('Second lesson')
  await button(page, 'Save').click()
  await expect(page.getByRole('heading', { level: 1, name: 'Second lesson' })).toBeVisible()
  await page.goto('/schedules')
  await expect(page.getByRole('row', { name: /Second lesson.*Disabled/ })).toBeVisible()
})

test('a manual run shows each device and its boot as they are reported', async ({ page }) => {
  await makeSchedule(page)
  await button(page, 'Run now').click()
  await button(page, 'Start run').click()
  await expect(page.getByText('Waiting for edges')).toBeVisible()
  const [order] = (await tenant.state()).schedules ?? []
  const instantUnixMs = order?.instants[0] ?? 0
  const [first = '', second = '', third = ''] = tenant.rows.deviceIds
  const bootId = randomUUID()
  await tenant.report({ id: bootId, startedUnixMs: instantUnixMs + 20 })
  await tenant.reportRun({
    scheduleId: order?.id ?? '',
    instantUnixMs,
    startedUnixMs: instantUnixMs,
    state: 'running',
    devices: [
      { deviceId: first, atUnixMs: instantUnixMs + 10, result: 'sent' },
      {
        deviceId: second,
        atUnixMs: instantUnixMs + 1010,
        result: 'hook_failed',
        text: 'exit 3: <b>no route</b>',
      },
      { deviceId: third, atUnixMs: instantUnixMs + 2010, result: 'booting_already' },
    ],
  })
  await expect(page.getByRole('row', { name: /pc-01.*Ready/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /pc-02.*Failed/ })).toContainText('exit 3: <b>no route</b>')
  await expect(page.getByRole('row', { name: /pc-03.*Skipped/ })).toContainText('already booting')
  await expect(page.getByText('1 of 6 devices ready, 1 failed, 1 skipped')).toBeVisible()
  await expect(page.getByRole('img', { name: /devices in/ })).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  const runUrl = page.url()
  await page.getByRole('row', { name: /pc-01/ }).getByRole('link').last().click()
  await expect(page).toHaveURL(new RegExp(`/boots/${bootId}$`))
  await page.goto(runUrl)
  await page.getByRole('link', { name: 'View the storm' }).click()
  await followStorm(page, { scheduleId: order?.id ?? '', instantUnixMs })
})

/** The six devices of the run as cells: one is ready, one failed, one skipped, and three wait. */
async function followStorm(
  page: Page,
  { scheduleId, instantUnixMs }: { scheduleId: string; instantUnixMs: number },
): Promise<void> {
  const map = page.getByRole('slider', { name: 'Devices by phase' })
  const legend = page.getByRole('list', { name: 'Devices by phase' })
  await expect(map).toHaveAttribute('aria-valuetext', /^pc-01 · .* · Ready · /)
  await expect(legend.getByRole('listitem').filter({ hasText: /^Waiting for power-on/ })).toHaveText(/3$/)
  await map.focus()
  await page.keyboard.press('ArrowRight')
  await expect(map).toHaveAttribute('aria-valuetext', /^pc-02 · .* · Failed/)
  expect.soft(await seriousProblems(page)).toEqual([])
  // A boot that begins changes its cell and the counts without a reload.
  const next = tenant.rows.macs[3] ?? ''
  const openedAt = await page.evaluate(() => performance.timeOrigin)
  const devices = [
    { deviceId: tenant.rows.deviceIds[3] ?? '', atUnixMs: instantUnixMs + 2990, result: 'sent' as const },
  ]
  await tenant.reportRun({ scheduleId, instantUnixMs, state: 'running', devices })
  await tenant.reportGoingOn({
    id: randomUUID(),
    mac: next,
    startedUnixMs: instantUnixMs + 3000,
    phases: [phase({ name: 'loader', startUs: 0 })],
  })
  await expect(legend.getByRole('listitem').filter({ hasText: /^Kernel and initramfs/ })).toHaveText(/1$/)
  await expect(legend.getByRole('listitem').filter({ hasText: /^Waiting for power-on/ })).toHaveText(/2$/)
  await page.getByRole('combobox', { name: 'View' }).selectOption('Table')
  await expect(page.getByRole('row', { name: /pc-04.*Kernel and initramfs/ })).toBeVisible()
  expect(await page.evaluate(() => performance.timeOrigin)).toBe(openedAt)
  await page.getByRole('combobox', { name: 'View' }).selectOption('Cells')
  await page.getByRole('button', { name: 'Full screen' }).click()
  await expect(page.getByRole('navigation', { name: 'Main' })).toHaveCount(0)
  await expect(page.getByText('1 of 5', { exact: true })).toBeVisible()
  expect.soft(await seriousProblems(page)).toEqual([])
  await page.getByRole('button', { name: 'Leave full screen' }).click()
  await expect(page.getByRole('navigation', { name: 'Main' })).toBeVisible()
  await map.focus()
  await page.keyboard.press('Home')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/boots\//)
}
