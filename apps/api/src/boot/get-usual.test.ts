import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { BootUsual } from './usual-times.ts'

const site = useTestSite('viewer')

const observed = { bytesIn: 0, bytesOut: 0, packetsIn: 0, packetsOut: 0, retries: 0, missingFragments: 0, reads: 0 }

/** A boot that began so many minutes before now, and took so many seconds. */
function bootAt(minutesAgo: number, seconds: number, changes: Partial<BootReport> = {}): BootReport {
  const { api, mac, tenant } = site()
  return bootWith({
    id: randomUUID(),
    mac,
    startedUnixMs: api.clock.now.getTime() - minutesAgo * 60_000,
    vdiskId: tenant.vdiskId,
    versionId: tenant.versionId,
    phases: [{ ...observed, name: 'dhcp', source: 'observed', startUs: 0, durationUs: seconds * 1_000_000 }],
    ...changes,
  })
}

const usual = (bootId: string) => site().query<BootUsual>('boot.usual', { bootId })

test('a boot is compared with earlier ready boots of its device and of its version', async () => {
  const { tenant } = site()
  const boot = bootAt(10, 99)
  const otherMac = tenant.macs[1] ?? ''
  await site().report(
    boot,
    ...[1, 2, 3, 4, 5].map((seconds) => bootAt(20 + seconds, seconds)),
    ...[11, 12].map((seconds) => bootAt(20 + seconds, seconds, { mac: otherMac })),
    // Later, not ready, of history that never happened, and of another version.
    bootAt(5, 50),
    bootAt(30, 60, { outcome: { kind: 'silent', phase: 'dhcp' } }),
    bootAt(31, 70, { generated: true }),
    bootAt(32, 6, { mac: otherMac, versionId: randomUUID() }),
  )
  const spread = { p10Us: 1_400_000, p50Us: 3_000_000, p90Us: 4_600_000 }
  expect(await usual(boot.id)).toEqual({
    device: { bootCount: 5, total: spread, phases: [{ name: 'dhcp', ...spread }] },
    version: {
      bootCount: 7,
      total: { p10Us: 1_600_000, p50Us: 4_000_000, p90Us: 11_400_000 },
      phases: [{ name: 'dhcp', p10Us: 1_600_000, p50Us: 4_000_000, p90Us: 11_400_000 }],
    },
  })
})

test('a boot of an unregistered device has no usual times, and another organization’s does not exist', async () => {
  const stranger = bootAt(1, 1, { mac: '02:bf:00:00:99:01', vdiskId: undefined, versionId: undefined })
  await site().report(stranger)
  expect(await usual(stranger.id)).toEqual({ device: null, version: null })
  const other = await site().other('owner')
  expect((await other.tryQuery('boot.usual', { bootId: stranger.id })).status).toBe(404)
})
