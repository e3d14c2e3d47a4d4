import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import type { FilesRead } from '@bootfarm/proto/uplink'
import { required } from '../lib/control-plane/api-client.ts'
import { expect, type Page, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { openReadyBoot } from './boot-rows.ts'

const mib = 2 ** 20

function readsOf(name: string, bytes: number, gainUs: number) {
  const isCold = gainUs > 0
  return {
    name,
    reads: Math.ceil(bytes / 65_536),
    bytes,
    coldReads: isCold ? 40 : 0,
    coldBytes: isCold ? bytes : 0,
    aheadBytes: isCold ? 0 : bytes,
    storageUs: gainUs + 900,
    firstUs: 12_400_000,
    gainUs,
  }
}

/** What a machine with systemd would have told: simulated devices have no programs. */
const report: FilesRead = {
  versionId: '9d0a6b32-55cf-4e5f-9b6d-3c1f6a1c2f10',
  reads: 900,
  bytes: 64 * mib,
  coldReads: 40,
  coldBytes: 4 * mib,
  aheadReads: 500,
  aheadBytes: 50 * mib,
  storageUs: 930_000,
  namedBytes: 64 * mib,
  droppedReads: 0,
  fileCount: 1,
  diskBytes: 2 ** 30,
  cellBytes: 4 * mib,
  cells: [[3, 4 * mib, 12_000]],
  files: [
    {
      name: '/usr/sbin/plymouthd',
      kind: 'file',
      reads: 40,
      bytes: 4 * mib,
      coldReads: 40,
      storageUs: 812_000,
      firstUs: 12_400_000,
    },
  ],
  slowest: [],
  trace: { state: 'complete', lost: 0, namedBytes: 63 * mib, unitBytes: 62 * mib },
  programs: [
    { unit: 'plymouth-start.service', ...readsOf('plymouthd', 4_299_162, 812_000) },
    { unit: 'init.scope', ...readsOf('systemd', 11 * mib, 0) },
    { unit: '(initramfs)', ...readsOf('mount', mib, 0) },
    { unit: 'a-unit-whose-name-is-too-long-for-a-column@it.service', ...readsOf('(read ahead only)', mib, 0) },
  ],
  units: [readsOf('plymouth-start.service', 4_299_162, 812_000), readsOf('(initramfs)', mib, 0)],
  slowestUnits: [{ name: 'plymouth-start.service', startUs: 3_200_000, durationUs: 1_900_000 }],
  unitChain: [
    { name: 'graphical.target', startUs: 9_800_000, durationUs: 0 },
    { name: 'display-manager.service', startUs: 8_100_000, durationUs: 1_700_000 },
  ],
}

/** As if the edge of the open boot had sent it. */
async function keepReport(page: Page): Promise<void> {
  const [, bootId = ''] = /\/boots\/([0-9a-f-]{36})/.exec(page.url()) ?? []
  const db = createDb(readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim())
  try {
    const { organizationId, siteId } = await db.boot.findFirstOrThrow({
      where: { id: bootId },
      select: { organizationId: true, siteId: true },
    })
    const kept = { siteId, report, receivedAt: new Date() }
    await db.bootFilesRead.upsert({
      where: { organizationId_bootId: { organizationId, bootId } },
      create: Object.assign({ organizationId, bootId }, kept),
      update: kept,
    })
  } finally {
    await db.$disconnect()
  }
}

test('what a boot read is shown by program and by unit, with what would help most', async ({ page }) => {
  await openReadyBoot(page)
  await keepReport(page)
  await page.reload()
  const panel = page.getByRole('region', { name: 'Files read' })
  await expect(panel.getByText(/^plymouthd \(plymouth-start\.service\) reads 4\.10\sMiB cold: 812\sms\./)).toBeVisible()
  await panel.getByRole('button', { name: 'Programs' }).click()
  const programs = panel.getByRole('table', { name: 'Programs that read the disk' })
  await expect(programs.getByRole('row')).toHaveCount(5)
  await expect(programs.getByRole('row').nth(1)).toContainText('plymouthd')
  await expect(panel.getByText(/^98\s% of the bytes are of a program/)).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  await panel.getByRole('button', { name: 'Units', exact: true }).click()
  await expect(panel.getByRole('table', { name: 'Units that read the disk' }).getByRole('row')).toHaveCount(3)
  await panel.getByRole('button', { name: 'Unit start times' }).click()
  const chain = panel.getByRole('table', { name: 'Critical chain' })
  await expect(chain.getByRole('row').nth(2)).toContainText('display-manager.service')
  await expect(panel.getByRole('table', { name: 'Slowest units' })).toContainText('plymouth-start.service')
  expect(await seriousProblems(page)).toEqual([])
})
