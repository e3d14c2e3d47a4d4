import { readFileSync } from 'node:fs'
import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { bootTimeoutMs, newestBoot, openReadyBoot } from './boot-rows.ts'

const phases = [
  'DHCP',
  'Network boot program',
  'Kernel and initramfs download',
  'Kernel start',
  'OS disk streaming',
  'Ready',
]
const duration = /^\d[\d.]*\s(µs|ms|s)$/

test('a boot’s waterfall shows each phase with its time, as a picture and as a table', async ({ page }) => {
  await openReadyBoot(page)
  const waterfall = page.getByRole('img', { name: /^Waterfall of/ })
  for (const phase of phases) {
    await expect(waterfall).toHaveAccessibleName(new RegExp(`${phase} \\d`))
    const row = page
      .getByRole('table', { name: 'Phases' })
      .getByRole('row')
      .filter({
        has: page.getByRole('rowheader', { name: phase, exact: true }),
      })
    await expect(row.getByRole('cell').first()).toHaveText(duration)
  }
  await expect(page.getByText(/^Not measured: .*Loader disk reads/)).toBeVisible()
})

test('where the time went: a sentence, the critical path with its evidence, and shares that add up', async ({
  page,
}) => {
  await openReadyBoot(page)
  const panel = page.getByRole('region', { name: 'Where the time went', exact: true })
  await expect(panel.getByText(/^Ready in \d[\d.]*\s(ms|s)/)).toBeVisible()
  const path = panel.getByRole('toolbar', { name: /^Critical path of/ })
  const first = path.getByRole('button').first()
  await first.focus()
  await expect(panel.getByText(/^0\sµs to/)).toBeVisible()
  await page.keyboard.press('ArrowRight')
  await expect(path.getByRole('button').nth(1)).toBeFocused()
  await expect(path.getByRole('button').nth(1)).toHaveAccessibleName(/: \d.*, (observed|reported|inferred)\. .+/)
  const more = panel.getByRole('button', { name: /^Show \d+ smaller owners?$/ })
  if (await more.isVisible()) await more.click()
  const shares = await panel
    .getByRole('table', { name: 'Owners of the boot’s time' })
    .getByRole('row')
    .getByRole('cell')
    .filter({ hasText: /^\d+\.\d\s%$/ })
    .allTextContents()
  expect(shares.reduce((sum, share) => sum + Math.round(10 * Number.parseFloat(share)), 0)).toBe(1000)
  await expect(page.getByText(/usual range/).first()).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
})

test('the link on a device’s screen leads to its boot, and one of no boot says so', async ({ page }) => {
  await openReadyBoot(page)
  const url = page.url()
  const linkId = (new URL(url).pathname.split('/').at(-1) ?? '').replaceAll('-', '').slice(0, 12)
  await page.goto(`/b/${linkId}`)
  await expect(page).toHaveURL(url)
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Boot of')
  await page.goto('/b/000000000000')
  await expect(page.getByText('This organization has no boot 000000000000.')).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await page.goto('/b/boot')
  await expect(page.getByText('This is no boot’s link.')).toBeVisible()
})

test('a boot is downloaded for programs, spreadsheets, collectors and Perfetto', async ({ page }) => {
  await openReadyBoot(page)
  const contents = {
    JSON: /"segments"/,
    CSV: /"critical path"/,
    OpenTelemetry: /"resourceSpans"/,
    Perfetto: /"traceEvents"/,
  }
  for (const [name, content] of Object.entries(contents)) {
    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name, exact: true }).click()
    const file = await downloading
    expect(file.suggestedFilename()).toMatch(/^boot-.*Z\.(otlp\.|perfetto\.)?(json|csv)$/)
    expect(readFileSync(await file.path(), 'utf8')).toMatch(content)
  }
})

test('the files of a boot, and what was sent over time, are shown as a picture and in numbers', async ({ page }) => {
  await openReadyBoot(page)
  const files = page.getByRole('table', { name: 'Boot files' })
  for (const name of ['boot.ipxe', 'kernel', 'initrd']) {
    const row = files.getByRole('row').filter({ has: page.getByText(name, { exact: true }) })
    await expect(row).toContainText(/HTTP.*\d\s(B|KiB|MiB)/)
  }
  await expect(files.getByRole('row').filter({ hasText: 'TFTP' }).first()).toContainText(/\d\s(KiB|MiB)/)
  const slider = page.getByRole('slider', { name: 'Point in time' })
  await slider.focus()
  await page.keyboard.press('End')
  await expect(slider).toHaveAttribute('aria-valuetext', /: Sent by the edge \d/)
  await page.getByRole('button', { name: 'Show values over time' }).click()
  await expect(page.getByRole('table', { name: 'Over time' }).getByRole('row')).not.toHaveCount(1)
  expect(await seriousProblems(page)).toEqual([])
})

test('bytes, packets, reads and the source of each value are shown', async ({ page }) => {
  await openReadyBoot(page)
  const table = page.getByRole('table', { name: 'Phases' })
  const stage2 = table.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'OS disk streaming' }) })
  await expect(stage2).toContainText(/MiB/)
  await expect(stage2).toContainText('observed')
  await expect(table.getByRole('row').filter({ hasText: 'Kernel start' })).toContainText('inferred')
  await expect(table.getByRole('row').filter({ hasText: 'Ready' })).toContainText('reported')
  await expect(page.getByRole('table', { name: 'Reads by size' }).getByRole('row')).not.toHaveCount(1)
})

test('read time is broken down for each phase and for the whole boot', async ({ page }) => {
  await openReadyBoot(page)
  const table = page.getByRole('table', { name: 'Disk read latency' })
  const groups = table.getByRole('rowgroup').filter({ has: page.getByRole('rowheader') })
  await expect(groups).toHaveCount(3)
  const reads: number[] = []
  for (const [index, phase] of ['Initramfs', 'OS', 'Whole boot'].entries()) {
    const rows = groups.nth(index).getByRole('row')
    await expect(rows.first()).toHaveText(new RegExp(`^${phase}[\\d,.\\s]+ reads?, \\d[\\d.]*\\s(KiB|MiB)$`))
    reads.push(Number((await rows.first().textContent())?.match(/([\d,.\s]+) reads?,/)?.[1]?.replace(/\D/g, '')))
    const cellsOf = (part: string) => rows.filter({ has: page.getByText(part, { exact: true }) }).getByRole('cell')
    // Mean, median, p95, longest and total.
    const measured = ['Storage, from memory', 'Send', 'Network', 'Client think time', 'Whole read', 'Blocked on disk']
    for (const part of measured)
      for (const figure of [1, 2, 3, 4, 5])
        await expect(cellsOf(part).nth(figure)).toHaveText(/^\d[\d.]*\s(µs|ms|s|min)\b/)
    for (const part of ['Storage, from memory', 'Send', 'Network', 'Client think time'])
      await expect(cellsOf(part).nth(6)).toHaveText(/^\d+ %$/)
    // One READ per read of its system; large reads are split.
    await expect(cellsOf('Blocked on disk').nth(6)).toBeEmpty()
  }
  const [initramfs = 0, system = 0, whole = 0] = reads
  expect(initramfs).toBeGreaterThan(0)
  expect(system).toBeGreaterThan(initramfs)
  expect(initramfs + system).toBe(whole)
  await expect(
    page.getByText(/A large read of the operating system is split into several, and each one counts/),
  ).toBeVisible()
})

test('the device’s own report is shown: its steps and its write cache', async ({ page }) => {
  await openReadyBoot(page)
  await expect(page.getByRole('img', { name: /; \d+ OS boot steps reported by the device$/ })).toBeVisible()
  const steps = page.getByRole('table', { name: 'OS boot steps' })
  await expect(steps.getByRole('row').filter({ hasText: 'Kernel' }).first()).toContainText(/reported/)
  await expect(page.getByRole('meter', { name: 'Write cache' })).toHaveAttribute('aria-valuetext', /\d %, .* of /)
})

test('a boot names device, edge and vDisk version, and is marked as simulated', async ({ page }) => {
  await openReadyBoot(page)
  await expect(page.getByRole('main').getByText('simulated', { exact: true })).toBeVisible()
  const facts = page.getByRole('region', { name: 'Details', exact: true })
  await expect(facts.getByText(/^02:bf:00:00:00:0\d$/)).toBeVisible()
  await expect(facts.getByRole('link', { name: /version \d+$/ })).toBeVisible()
  await expect(facts.getByText(/^x86 BIOS/)).toBeVisible()
  await expect(facts.getByText('bootfarm-sim, 1 Gbit/s')).toBeVisible()
})

test('a boot shows its network, and the report of all of them has its segment', async ({ page }) => {
  await openReadyBoot(page)
  const network = page.getByRole('region', { name: 'Network', exact: true })
  await expect(network.getByText('1 Gbit/s')).toBeVisible()
  await expect(network.getByText(/^p50 .*, p95 /)).toBeVisible()
  await expect(network.getByText(/^\d+ of [\d,]+ packets/).first()).toBeVisible()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Network' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Network' })).toBeVisible()
  const row = page.getByRole('table', { name: 'Segments and network cards' }).getByRole('row', { name: /bootfarm-sim/ })
  await expect(row.first()).toContainText(/\d+ Gbit\/s|1\s?Gbit/)
  await expect(page.getByText(/boots? measured their network/)).toBeVisible()
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'CSV' }).click()
  expect((await download).suggestedFilename()).toMatch(/^network-[\d-]+\.csv$/)
})

test('a running boot’s page grows phase by phase until it is ready, without a reload or a second request', async ({
  page,
}) => {
  await page.goto('/boots?origin=simulated')
  const before = await newestBoot(page)
  await expect.poll(() => newestBoot(page), { timeout: bootTimeoutMs }).not.toBe(before)
  await page.goto(await newestBoot(page))
  const openedAt = await page.evaluate(() => performance.timeOrigin)
  const asked: string[] = []
  await expect(page.getByRole('img', { name: /^Waterfall of/ })).toBeVisible()
  page.on('request', (request) => {
    if (request.url().includes('boot.get')) asked.push(request.url())
  })
  await expect(page.getByRole('img', { name: /Ready \d/ })).toBeVisible({ timeout: bootTimeoutMs })
  expect(await page.evaluate(() => performance.timeOrigin)).toBe(openedAt)
  // The event itself brings what the page shows: the page does not ask for the boot again.
  expect(asked).toEqual([])
})
