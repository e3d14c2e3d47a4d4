import { randomUUID } from 'node:crypto'
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { required } from '../lib/control-plane/api-client.ts'
import { cacheOf, fullGuest, phase, Tenant } from '../lib/control-plane/tenant.ts'
import { type Cookie, expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

let tenant: Tenant
let cookies: Cookie[]
test.beforeAll(async ({ browser }) => {
  tenant = await Tenant.create()
  const context = await browser.newContext()
  cookies = await signedIn(await context.newPage(), tenant)
  await context.close()
})
test.beforeEach(({ page }) => page.context().addCookies(cookies))

async function signedIn(page: Page, { person }: Tenant): Promise<Cookie[]> {
  await signInAs(page, person)
  return page.context().cookies()
}

const deviceLink = (page: Page, index: number) => page.getByRole('link', { name: `pc-0${index + 1}` })

test('a boot’s page shows all 24 steps that the device reported, beside the phases and in numbers', async ({
  page,
}) => {
  const id = randomUUID()
  await tenant.report({ id, guest: fullGuest })
  await page.goto(`/boots/${id}`)
  const picture = page.getByRole('img', {
    name: /^Waterfall of 15\.0\ss: DHCP .*; 24 OS boot steps reported by the device$/,
  })
  for (const text of ['Firmware', 'Kernel', 'Initramfs', 'OS', 'Slowest units', 'root file system', '3.17\u00a0s'])
    await expect(picture.getByText(text, { exact: true })).toBeVisible()

  const table = page.getByRole('table', { name: 'OS boot steps' })
  await expect(table.getByRole('row')).toHaveCount(25)
  const firmware = table.getByRole('row').nth(1)
  await expect(firmware).toContainText(/firmware.*−8\.15\ss.*4\.85\ss.*reported/)
  await expect(page.getByText(/^The device did not report how long|^Not reported/)).toHaveCount(0)
})

test('values that the device did not report are marked as not reported', async ({ page }) => {
  const [silent, partly] = [randomUUID(), randomUUID()]
  await tenant.report({ id: silent })
  const steps = fullGuest.steps.filter(({ group }) => group === 'kernel' || group === 'initramfs')
  await tenant.report({ id: partly, guest: { ...fullGuest, steps } })
  await page.goto(`/boots/${silent}`)
  await expect(page.getByText(/^The device did not report how long its firmware/)).toBeVisible()
  await page.goto(`/boots/${partly}`)
  await expect(page.getByText('Not reported by the device: firmware, OS, slowest units.')).toBeVisible()
})

test('a filling write cache is shown on the boot’s page, the device’s page and in the list, with the remedy', async ({
  page,
}) => {
  for (const [index, percent] of [12, 83, 96, 100].entries()) {
    const guest = { ...fullGuest, writeCache: cacheOf(percent) }
    await tenant.report({ id: randomUUID(), mac: tenant.rows.macs[index + 2] ?? '', guest })
  }
  await page.goto('/devices?cache=warning')
  const rows = page.getByRole('table', { name: 'Devices' }).getByRole('rowheader')
  await expect(rows).toHaveText([/pc-04.*cache 83 %/, /pc-05.*cache 96 %/, /pc-06.*cache full/])
  await page.getByRole('combobox', { name: 'Write cache' }).selectOption('95 % or more')
  await expect(rows).toHaveText([/pc-05/, /pc-06/])

  await deviceLink(page, 5).click()
  const warning = page.getByRole('region', { name: 'Write cache warning' })
  await expect(warning).toContainText(/The write cache is full\..*restart the device\..*bootfarm\.overlay=/)
  await expect(page.getByRole('meter', { name: 'Write cache' })).toHaveAttribute(
    'aria-valuetext',
    /^100 %, 2\.00.GiB of 2\.00.GiB$/,
  )
  await page.getByRole('table', { name: 'Boots' }).getByRole('link').first().click()
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Boot of pc-06')
  await expect(warning).toContainText('The write cache is full.')
  await expect(page.getByRole('meter', { name: 'Write cache' })).toBeVisible()
  await page.goto('/devices')
  await deviceLink(page, 2).click()
  await expect(page.getByRole('meter', { name: 'Write cache' })).toHaveAttribute('aria-valuenow', '12')
  await expect(warning).toHaveCount(0)
})

test('a running device is powered off after a question that names it, and its page follows', async ({ page }) => {
  const id = randomUUID()
  await tenant.report({ id, mac: tenant.rows.macs[1] ?? '', guest: fullGuest })
  await page.goto(`/devices/${tenant.rows.deviceIds[1]}`)
  await expect(page.getByText(/^running since/)).toBeVisible()
  await page.getByRole('button', { name: 'Power off' }).click()
  const question = page.getByRole('alertdialog', { name: 'Power off pc-02?' })
  await expect(question).toContainText(/pc-02 \(02:bf:00:00:00:02\) shuts down and powers off/)
  await expect(question.getByRole('button', { name: 'Cancel' })).toBeFocused()
  await page.keyboard.press('Escape')
  await expect(question).toHaveCount(0)

  await page.getByRole('button', { name: 'Power off' }).click()
  const answered = page.waitForResponse(/device\.orderPower/)
  await page.getByRole('button', { name: 'Power off pc-02' }).click()
  const { result } = (await (await answered).json())[0] as { result: { data: { powerOrderId: string } } }
  const note = page.getByRole('main').getByRole('status').filter({ hasText: 'Power-off' })
  await expect(note).toContainText('waiting for the device')
  await tenant.report({
    id,
    mac: tenant.rows.macs[1] ?? '',
    revision: 2,
    guest: { ...fullGuest, powerOrderId: result.data.powerOrderId },
  })
  await expect(note).toContainText('accepted by the device')
  await expect(page.getByText(/^off since/)).toBeVisible()
  await expect(page.getByRole('button', { name: 'Power off' })).toHaveCount(0)
})

test('a device is restarted from the list with the keyboard alone', async ({ page }) => {
  await tenant.report({ id: randomUUID(), guest: fullGuest })
  await page.goto('/devices')
  const row = page.getByRole('row').filter({ has: deviceLink(page, 0) })
  await expect(row).toContainText(/Running\s*since/)
  await row.getByRole('button', { name: 'Power of pc-01' }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('menuitem', { name: 'Restart' })).toBeFocused()
  await page.keyboard.press('Enter')
  const question = page.getByRole('alertdialog', { name: 'Restart pc-01?' })
  await expect(question).toBeVisible()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect(row).toContainText('restart waiting')
})

test('the list shows the known state of each device', async ({ page }) => {
  const own = await Tenant.create()
  const mac = (index: number) => own.rows.macs[index] ?? ''
  await own.report({ id: randomUUID(), mac: mac(0) })
  const failed = { kind: 'failed', phase: 'breather', cause: 'kernel_without_nbd' } as const
  await own.report({ id: randomUUID(), mac: mac(1), outcome: failed })
  await own.report({ id: randomUUID(), mac: mac(2), outcome: { kind: 'silent', phase: 'loader' } })
  await leaveSession(page)
  await signedIn(page, own)
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Devices' }).click()
  const now = (index: number) =>
    page
      .getByRole('row')
      .filter({ has: deviceLink(page, index) })
      .getByRole('cell')
      .nth(4)
  // With the date if midnight has passed meanwhile.
  await expect(now(0)).toHaveText(/^Running\s*since (\d\d:\d\d:\d\d|\d+ \w+ \d\d:\d\d)$/)
  await expect(now(1)).toHaveText(/^Failed\s*since/)
  await expect(now(2)).toHaveText('No data')
  await expect(now(2).getByTitle('The last boot timed out.')).toBeVisible()
  await expect(now(3).getByTitle('The device has not booted yet.')).toBeVisible()
})

test.describe('the serial console', () => {
  const consoles = () => path.join(required('BOOTFARM_DATA'), 'consoles')
  const file = (mac: string) => path.join(consoles(), `${mac.replaceAll(':', '-')}.log`)
  // MAC addresses that no other machine of the product under test has.
  const macOf = (number: number) => `02:bf:c0:00:00:0${number}`
  // The one whose consoles these are.
  let owner: Tenant
  let ownersCookies: Cookie[]
  test.beforeAll(async ({ browser }) => {
    mkdirSync(consoles(), { recursive: true })
    owner = await Tenant.create('operator', required('BOOTFARM_CONSOLES_ORGANIZATION'))
    const context = await browser.newContext()
    ownersCookies = await signedIn(await context.newPage(), owner)
    await context.close()
  })
  test.beforeEach(async ({ page }) => {
    await leaveSession(page)
    await page.context().addCookies(ownersCookies)
  })
  test.afterEach(() => {
    for (const number of [1, 2]) rmSync(file(macOf(number)), { force: true })
  })

  test('stands beside the waterfall, follows a running boot, and marks the lines of a phase', async ({ page }) => {
    const mac = macOf(1)
    const startedUnixMs = Date.now() - 4_000
    const line = (atMs: number, text: string) => `${startedUnixMs + atMs} ${text}\n`
    writeFileSync(
      file(mac),
      line(-900, 'SeaBIOS (version 1.16)') +
        line(500, 'net0: 52:54:00 <b>bold</b>') +
        line(2_000, '\x1b[32mboot.ipxe\x1b[0m'),
    )
    const going = {
      id: randomUUID(),
      mac,
      startedUnixMs,
      phases: [
        phase({ name: 'dhcp', startUs: 0, durationUs: 1_000_000 }),
        phase({ name: 'nbp', startUs: 1_000_000, durationUs: 2_000_000 }),
      ],
    }
    await owner.reportGoingOn(going)
    await page.goto(`/boots/${going.id}`)
    const lines = page.getByRole('region', { name: 'Serial console output' })
    await expect(lines.getByRole('listitem')).toHaveText([
      '−0.90SeaBIOS (version 1.16)',
      '0.50net0: 52:54:00 <b>bold</b>',
      '2.00boot.ipxe',
    ])
    await page.getByRole('button', { name: 'DHCP: highlight its console lines' }).focus()
    await expect(lines.locator('[data-marked]')).toHaveText([/net0/])
    await page.keyboard.press('Tab')
    await expect(lines.locator('[data-marked]')).toHaveText([/boot\.ipxe/])

    appendFileSync(file(mac), line(3_500, 'Linux version 6.1'))
    await expect(lines.getByRole('listitem').last()).toHaveText('3.50Linux version 6.1')
    await owner.report({ id: going.id, mac, startedUnixMs, revision: 2 })
    appendFileSync(file(mac), line(15_000, 'login:'))
    await expect(lines.getByRole('listitem').last()).toHaveText('15.00login:')
  })

  test('is absent without a recording', async ({ page }) => {
    const id = randomUUID()
    await owner.report({ id, mac: macOf(2) })
    await page.goto(`/boots/${id}`)
    await expect(page.getByRole('img', { name: /^Waterfall of/ })).toBeVisible()
    await expect(page.getByRole('heading', { name: 'Serial console' })).toHaveCount(0)
  })

  test('is absent for another organization, whose edge reports the same address', async ({ page }) => {
    writeFileSync(file(macOf(2)), `${Date.now()} login: root password\n`)
    const id = randomUUID()
    await tenant.report({ id, mac: macOf(2) })
    await leaveSession(page)
    await page.context().addCookies(cookies)
    await page.goto(`/boots/${id}`)
    await expect(page.getByRole('img', { name: /^Waterfall of/ })).toBeVisible()
    await expect(page.getByRole('heading', { name: 'Serial console' })).toHaveCount(0)
  })
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing serious with everything on the page, ${colorScheme}, and 390 px are enough`, async ({
    page,
  }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const id = randomUUID()
    await tenant.report({
      id,
      mac: tenant.rows.macs[5] ?? '',
      startedUnixMs: Date.now() - 30_000,
      guest: { ...fullGuest, writeCache: cacheOf(97) },
    })
    await page.goto(`/devices/${tenant.rows.deviceIds[5]}`)
    await page.getByRole('button', { name: 'Restart' }).click()
    await expect(page.getByRole('alertdialog')).toBeVisible()
    expect.soft(await seriousProblems(page), 'the question').toEqual([])
    await page.keyboard.press('Escape')
    for (const address of [`/boots/${id}`, `/devices/${tenant.rows.deviceIds[5]}`, '/devices?cache=warning']) {
      await page.setViewportSize({ width: 1280, height: 800 })
      await page.goto(address)
      await expect(page.getByText(/97 %/).first()).toBeVisible()
      expect.soft(await seriousProblems(page), address).toEqual([])
      await page.setViewportSize({ width: 390, height: 844 })
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      expect.soft(width, address).toBeLessThanOrEqual(390)
    }
  })
}
