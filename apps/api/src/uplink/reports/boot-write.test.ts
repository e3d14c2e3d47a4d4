import { randomUUID } from 'node:crypto'
import { type BootReport, bootReport, bootReportSizeMax, type DhcpOffer } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { bootWith } from '../../../test/edge-client.ts'
import { openSubscription } from '../../../test/test-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import type { BootDetail, BootSummary } from '../../boot/schema.ts'

const site = useTestSite('viewer')
const getBoot = (bootId: string) => site().query<BootDetail>('boot.get', { bootId })
const newBoot = (changes: Partial<BootReport>) => bootWith({ id: randomUUID(), mac: site().mac, ...changes })

const own: DhcpOffer = {
  atUs: 3_667,
  server: '10.78.0.1',
  ours: true,
  kind: 'proxy',
  nextServer: '10.78.0.1',
  file: 'b/89a9e9b29072e06e/snponly.efi',
  vendorClass: 'PXEClient',
}
const other: DhcpOffer = {
  atUs: 3_806,
  server: '10.78.0.2',
  ours: false,
  kind: 'both',
  yourIp: '10.78.0.84',
  file: 'other.efi',
}

describe('what a boot’s report says of its way to the boot program', () => {
  test('is kept: offers in their order, the program, the last packet each way', async () => {
    const boot = newBoot({
      offers: [own, other],
      program: { set: 'ipxe', file: 'snponly.efi' },
      routerWait: { atUs: 410_000, durationUs: 15_340_000, solicitations: 2 },
      loaderSteps: [
        { name: 'script', startUs: 500, durationUs: 20 },
        { name: 'kernel', startUs: 600 },
      ],
      bootCommandUs: 9_000_000,
      transfers: [
        {
          name: 'snponly.efi',
          protocol: 'tftp',
          startUs: 1,
          durationUs: 2,
          bytes: 3,
          retransmitted: 4,
          requests: 5,
          outcome: 'done',
        },
        { name: 'kernel', protocol: 'http', startUs: 600, durationUs: 7, bytes: 8 },
      ],
      transfersLeftOut: 9,
      series: { widthUs: 100_000, bytes: [1, 0, 2], reads: [0, 0, 1] },
      readAhead: { hadProfile: true, askedBytes: 8192, usedBytes: 4096, waitedReads: 3 },
      readTimes: { turnaround: { firstBucket: 10, counts: [1, 2], maxUs: 1500, sumUs: 3500 } },
      lastPackets: {
        fromDevice: { atUs: 12_400_000, what: 'TFTP ACK of block 145' },
        fromEdge: { atUs: 12_399_000, what: 'TFTP DATA block 149' },
      },
      outcome: { kind: 'failed', phase: 'dhcp', cause: 'other_offer_won' },
    })
    await site().report(boot)
    const absent = { yourIp: null, nextServer: null, relay: null, file: null, vendorClass: null }
    expect(await getBoot(boot.id)).toMatchObject({
      offers: [
        { ...absent, ...own },
        { ...absent, ...other },
      ],
      facts: { program: { set: 'ipxe', file: 'snponly.efi' } },
      routerWait: { atUs: 410_000, durationUs: 15_340_000, solicitations: 2 },
      loaderSteps: [
        { name: 'script', startUs: 500, durationUs: 20 },
        { name: 'kernel', startUs: 600, durationUs: null },
      ],
      bootCommandUs: 9_000_000,
      transfers: [
        { name: 'snponly.efi', protocol: 'tftp', bytes: 3, retransmitted: 4, requests: 5, outcome: 'done' },
        { name: 'kernel', protocol: 'http', durationUs: 7, retransmitted: 0, requests: 1, outcome: null },
      ],
      transfersLeftOut: 9,
      series: { widthUs: 100_000, bytes: [1, 0, 2], retransmissions: [0, 0, 0], reads: [0, 0, 1] },
      readAhead: { hadProfile: true, askedBytes: 8192, usedBytes: 4096, waitedReads: 3 },
      readTimes: {
        turnaround: { count: 3, maxUs: 1500, sumUs: 3500 },
        storage: null,
        wire: null,
        bytes: null,
        phases: [],
      },
      lastPackets: {
        fromDevice: { what: 'TFTP ACK of block 145', at: '2026-11-20T11:59:12.400Z' },
        fromEdge: { atUs: 12_399_000 },
      },
      cause: { sentence: expect.stringContaining('another DHCP server') },
    })
  })

  test('is kept: where the time of the reads went in each phase, and the sum of them', async () => {
    const part = (maxUs: number) => ({ firstBucket: 10, counts: [2], maxUs, sumUs: maxUs * 2 })
    const boot = newBoot({
      readTimes: {
        bytes: 12_288,
        send: { ...part(900), counts: [4], sumUs: 3_400 },
        phases: [
          { name: 'initramfs', bytes: 4_096, send: part(800) },
          { name: 'system', bytes: 8_192, send: part(900) },
        ],
      },
    })
    await site().report(boot)
    expect((await getBoot(boot.id)).readTimes).toMatchObject({
      bytes: 12_288,
      send: { count: 4, maxUs: 900, sumUs: 3_400 },
      phases: [
        { name: 'initramfs', bytes: 4_096, send: { count: 2, maxUs: 800, sumUs: 1_600 } },
        { name: 'system', bytes: 8_192, send: { count: 2, maxUs: 900, sumUs: 1_800 } },
      ],
    })
  })

  test('is absent where an older edge does not say it', async () => {
    const boot = newBoot({})
    await site().report(boot)
    expect(await getBoot(boot.id)).toMatchObject({
      offers: [],
      lastPackets: null,
      menuEntry: null,
      routerWait: null,
      loaderSteps: [],
      bootCommandUs: null,
      transfers: [],
      transfersLeftOut: 0,
      series: null,
      readAhead: null,
      readTimes: null,
      facts: { program: null },
    })
  })

  test('with one packet alone has no other', async () => {
    const boot = newBoot({ lastPackets: { fromDevice: { atUs: 1, what: 'DHCP DISCOVER' } } })
    await site().report(boot)
    expect((await getBoot(boot.id)).lastPackets).toMatchObject({ fromEdge: null })
  })

  test('in words that are not printable, more used than was asked for, or times beyond the last bucket, counts as lost, and the next report is applied', async () => {
    const damaged = newBoot({ offers: [{ ...own, file: 'a\u001bb' }] })
    const unequal = newBoot({ series: { widthUs: 1, bytes: [1, 2], reads: [1] } })
    const absurd = newBoot({
      readAhead: { hadProfile: true, askedBytes: 4096, usedBytes: 8192, waitedReads: 0 },
    })
    const endless = newBoot({
      readTimes: { fetch: { firstBucket: 20, counts: [1, 1, 1, 1, 1], maxUs: 1, sumUs: 1 } },
    })
    const next = newBoot({})
    await site().report(damaged, unequal, absurd, endless, next)
    for (const { id } of [damaged, unequal, absurd, endless])
      expect((await site().tryQuery('boot.get', { bootId: id })).status).toBe(404)
    expect((await getBoot(next.id)).outcome).toBe('ready')
  })

  test('with all that there may be fits into a report', () => {
    const text = '~'.repeat(64)
    const offer: DhcpOffer = {
      atUs: 60_000_000,
      server: '255.255.255.255',
      ours: false,
      kind: 'address',
      yourIp: '255.255.255.255',
      nextServer: '255.255.255.255',
      relay: '255.255.255.255',
      file: text,
      vendorClass: text,
    }
    const named = { atUs: 60_000_000, what: text }
    const boot = bootReport.parse(
      newBoot({
        offers: Array.from({ length: 8 }, () => offer),
        lastPackets: { fromDevice: named, fromEdge: named },
        program: { set: 'a'.repeat(32), file: text },
        menuEntry: text,
        phases: [],
      }),
    )
    expect(Buffer.byteLength(JSON.stringify(boot))).toBeLessThan(bootReportSizeMax)
  })
})

describe('the entry that was taken in the boot menu', () => {
  test('is in the boot’s page, in lists, and in open pages, also when it comes later', async () => {
    const events = await openSubscription(site().api, { path: 'boot.onChange', cookie: site().cookie })
    await events.next()
    const { outcome: _none, ...boot } = newBoot({})
    await site().report(boot)
    await events.next()
    await site().report({ ...boot, revision: 2, menuEntry: 'Debian 12', outcome: { kind: 'local_disk' } })
    expect((await events.next()).data).toMatchObject({ boot: { menuEntry: 'Debian 12' } })
    events.close()
    const { items } = await site().query<{ items: BootSummary[] }>('boot.list', { outcome: 'local_disk' })
    expect(items).toMatchObject([{ id: boot.id, menuEntry: 'Debian 12', outcome: 'local_disk' }])
    expect(await getBoot(boot.id)).toMatchObject({ menuEntry: 'Debian 12', failedPhase: null, cause: null })
  })
})
