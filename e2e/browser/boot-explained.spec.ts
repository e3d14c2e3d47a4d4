import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { DhcpOffer } from '@bootfarm/proto/uplink'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { expect, test } from '../lib/lab/page-test.ts'
import { seriousProblems } from './axe.ts'
import { leaveSession, signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] } })

const pcap = Uint8Array.from(readFileSync(new URL('../../apps/api/test/captures/uefi-pxe.pcap', import.meta.url)))
const own: DhcpOffer = {
  atUs: 3_667,
  server: '10.78.0.1',
  ours: true,
  kind: 'proxy',
  nextServer: '10.78.0.1',
  file: 'b/89a9e9b29072e06e/snponly.efi',
}
const rival: DhcpOffer = {
  atUs: 3_806,
  server: '10.78.0.9',
  ours: false,
  kind: 'both',
  yourIp: '10.78.0.84',
  nextServer: '10.78.0.9',
  file: '<b>wds</b>.efi',
}

test('a boot that another DHCP server won shows the offers, the last packets, and its packets to view and download', async ({
  page,
}) => {
  const tenant = await Tenant.create()
  const id = randomUUID()
  await tenant.report({
    id,
    mac: '52:54:00:78:00:00',
    offers: [own, rival],
    program: { set: 'ipxe', file: 'snponly.efi' },
    lastPackets: { fromDevice: { atUs: 12_400_000, what: 'DHCP REQUEST of server 10.78.0.9' } },
    outcome: { kind: 'failed', phase: 'dhcp', cause: 'other_offer_won' },
  })
  await tenant.capture(id, pcap)
  await signInAs(page, tenant.person)
  await page.goto(`/boots/${id}`)
  const offers = page.getByRole('table', { name: 'DHCP offers heard' }).getByRole('row')
  await expect(offers.nth(1)).toContainText(/10\.78\.0\.1this edge.*boot.*snponly\.efi/)
  await expect(offers.nth(2)).toContainText(/10\.78\.0\.9other.*address and boot.*<b>wds<\/b>\.efi/)
  await expect(page.getByText(/^10\.78\.0\.9 also offered the boot program <b>wds<\/b>\.efi/)).toBeVisible()
  const last = page.getByRole('region', { name: 'Last packets' })
  await expect(last).toContainText(/DHCP REQUEST of server 10\.78\.0\.9.*at \+12\.4\ss/)
  await expect(last).toContainText('none sent')
  await expect(page.getByText('snponly.efi (ipxe)')).toBeVisible()

  const packets = page.getByRole('region', { name: 'Packet capture' }).first()
  await expect(packets).toContainText('51 packets')
  await packets.getByRole('button', { name: 'Show packets' }).click()
  const rows = page.getByRole('table', { name: 'Captured packets' }).getByRole('row')
  await expect(rows).toHaveCount(52)
  await expect(rows.nth(1)).toContainText(/from the device.*DHCP DISCOVER, PXEClient:Arch:00007/)
  await expect(rows.filter({ hasText: 'HTTP GET /b/89a9e9b29072e06e/boot.ipxe' })).toHaveCount(1)
  expect(await seriousProblems(page)).toEqual([])
  const downloading = page.waitForEvent('download')
  await packets.getByRole('link', { name: 'Download pcap' }).click()
  const file = await downloading
  expect(file.suggestedFilename()).toMatch(/^boot-52-54-00-78-00-00-\d{4}-\d\d-\d\dT\d{6}Z\.pcap$/)
  expect(readFileSync(await file.path()).equals(pcap)).toBe(true)
})

test('a boot whose menu chose the machine’s own disk is neither ready nor failed', async ({ page }) => {
  const tenant = await Tenant.create()
  const id = randomUUID()
  await tenant.report({ id, menuEntry: 'Own disk {}', outcome: { kind: 'local_disk' } })
  await signInAs(page, tenant.person)
  await page.goto(`/boots/${id}`)
  await expect(page.getByRole('region', { name: 'Cause' })).toContainText(
    '“Own disk {}” started the device’s local disk',
  )
  await page.goto('/boots?outcome=local_disk')
  await expect(page.getByRole('table', { name: 'Boots' })).toContainText('Own disk {}')
  await page.goto(`/devices/${tenant.rows.deviceIds[0]}`)
  await expect(page.getByText(/^local disk since/)).toBeVisible()
})

test('a boot that failed over to another edge shows when and from which edge, and stays one boot', async ({ page }) => {
  const tenant = await Tenant.create()
  const id = randomUUID()
  const handOver = { number: 2, fromEdgeId: randomUUID(), atUs: 4_400_000 }
  await tenant.report({ id, handOver, outcome: { kind: 'ready' } })
  await signInAs(page, tenant.person)
  await page.goto(`/boots/${id}`)
  const facts = page.getByRole('region', { name: 'Details', exact: true })
  await expect(facts.getByText(/because its edge did not answer \(2 fail-overs in total\)/)).toBeVisible()
  await page.goto('/boots')
  await expect(page.locator(`a[href="/boots/${id}"]`)).toHaveCount(1)
  expect(await seriousProblems(page)).toEqual([])
})

test('a failed boot offers what its viewer may do about it at once', async ({ page }) => {
  const tenant = await Tenant.create('admin')
  const { organizationId, vdiskId } = tenant.rows
  const fields = {
    sizeBytes: 419_430_400,
    diskPath: 'a/2/disk.raw',
    kernelPath: 'a/2/kernel',
    initrdPath: 'a/2/initrd',
  }
  const { id: versionId } = await tenant.inDatabase((db) =>
    db.vdiskVersion.create({ data: { organizationId, vdiskId, number: 2, commandLine: 'quiet', ...fields } }),
  )
  const id = randomUUID()
  const outcome = { kind: 'failed', phase: 'loader', cause: 'version_missing' } as const
  await tenant.report({ id, vdiskId, versionId, outcome })
  await signInAs(page, tenant.person)
  await page.goto(`/boots/${id}`)
  const why = page.getByRole('region', { name: 'Cause' })
  await expect(why.getByRole('link', { name: 'Open the vDisk' })).toHaveAttribute('href', `/vdisks/${vdiskId}`)
  await expect(why.getByRole('link', { name: 'Open the edge' })).toHaveAttribute('href', `/edges/${tenant.edgeId}`)
  await expect(why.getByRole('button', { name: 'Assign a vDisk' })).toBeVisible()
  expect(await seriousProblems(page)).toEqual([])
  const rollBack = why.getByRole('button', { name: 'Roll back to version 1' })
  await expect(rollBack).toBeVisible()

  await leaveSession(page)
  await signInAs(page, await tenant.member('viewer'))
  await page.goto(`/boots/${id}`)
  await expect(why.getByRole('link', { name: 'Open the edge' })).toBeVisible()
  await expect(page.getByRole('status').getByText('Live', { exact: true })).toBeVisible()
  await expect(page.getByRole('button', { name: /^(Roll back|Assign|Wake)/ })).toHaveCount(0)

  await leaveSession(page)
  await signInAs(page, tenant.person)
  await page.goto(`/boots/${id}`)
  await rollBack.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back to version 1', exact: true }).click()
  await expect(page.getByRole('dialog')).toHaveCount(0)
  // Devices get version 1 now.
  await expect(rollBack).toHaveCount(0)
})
