import { randomUUID } from 'node:crypto'
import type { NetworkReport } from '@bootfarm/proto/uplink'
import { parse } from 'csv-parse/sync'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { BootDetail } from '../boot/schema.ts'
import type { NetworkReportView } from './schema.ts'

const site = useTestSite('viewer')
const reportOf = (input: object = {}) => site().query<NetworkReportView>('network.report', input)
const hourMs = 3_600_000
const now = () => site().api.clock.now.getTime()

const network: NetworkReport = {
  duplex: 'half',
  linkMbit: 100,
  mtu: 1500,
  sizeMax: 1472,
  size: 1472,
  toDevice: { packets: 10_000, lost: 200, runs: 100, runPackets: 190, longestRun: 4 },
  fromDevice: { packets: 2_000, lost: 0 },
  order: { packets: 9_000, late: 0, distance: 0 },
  rtt: { count: 80, minUs: 90, p50Us: 120, p95Us: 300 },
}
const machine = { processors: 4, memoryMib: 8_000, card: '8086:15b8', driver: 'e1000e', linkMbit: 100 }

const measured = (mac: string, changes: object = {}) =>
  bootWith({
    id: randomUUID(),
    mac,
    ip: '10.1.2.77',
    startedUnixMs: now() - hourMs,
    machine,
    network,
    ...changes,
  })

test('boots are summed up by segment and card, with their devices, and boots without figures are left out', async () => {
  const { macs, siteId } = site().tenant
  const [mac = ''] = macs
  const boots = Array.from({ length: 6 }, (_, index) =>
    measured(mac, {
      network: { ...network, toDevice: { packets: 10_000, lost: 200 + index, runs: 0, runPackets: 0, longestRun: 0 } },
    }),
  )
  await site().report(...boots, bootWith({ id: randomUUID(), mac }), measured('02:bf:00:00:99:09', { ip: '10.9.9.9' }))
  const report = await reportOf()
  expect(report).toMatchObject({ bootCount: 7, isCut: false, bootsMin: 5, otherPaths: 0 })
  const [worst, other] = report.paths
  expect(worst).toMatchObject({
    siteId,
    siteName: expect.any(String),
    segment: '10.1.2.0/24',
    card: 'e1000e 8086:15b8',
    bootCount: 6,
    deviceCount: 1,
    toDevice: { packets: 60_000, lost: 1_215 },
    fromDevice: { packets: 12_000, lost: 0, share: 0, low: 0 },
    rtt: { p50Us: 120, p95Us: 300 },
    links: [{ linkMbit: 100, duplex: 'half', deviceCount: 1 }],
    faults: [{ kind: 'loss_to_device', bootCount: 6 }, { kind: 'half_duplex' }],
  })
  expect(worst?.faults[0]?.devices).toEqual([{ id: expect.any(String), mac, name: expect.any(String) }])
  expect(worst?.faults[0]?.bootIds).toHaveLength(5)
  // Nobody has registered that one, and one boot proves no loss.
  expect(other).toMatchObject({
    segment: '10.9.9.0/24',
    faults: [{ kind: 'half_duplex', devices: [{ id: null, name: null }] }],
  })

  const facts = (await site().query<BootDetail>('boot.get', { bootId: boots[0]?.id })).facts
  expect(facts.network).toMatchObject({
    duplex: 'half',
    mtuBytes: 1500,
    crcErrors: 0,
    isBlackHole: false,
    lostSizeBytes: null,
  })
  expect(facts.network?.rtt).toEqual(network.rtt)
})

test('a later report without figures keeps those of an earlier one', async () => {
  const [mac = ''] = site().tenant.macs
  const boot = measured(mac)
  await site().report(boot)
  const { network: _network, ip: _ip, machine: _machine, ...later } = boot
  await site().report({ ...later, revision: 2 })
  expect((await reportOf()).paths).toMatchObject([{ segment: '10.1.2.0/24', card: 'e1000e 8086:15b8' }])
})

test('the period and the site bound the boots', async () => {
  const [mac = ''] = site().tenant.macs
  await site().report(measured(mac), measured(mac, { startedUnixMs: now() - 40 * 24 * hourMs }))
  expect((await reportOf()).bootCount).toBe(1)
  const since = new Date(now() - 60 * 24 * hourMs).toISOString()
  expect((await reportOf({ since })).bootCount).toBe(2)
  expect((await reportOf({ since, until: new Date(now() - 2 * hourMs).toISOString() })).bootCount).toBe(1)
  expect((await reportOf({ since, siteId: site().tenant.siteId })).bootCount).toBe(2)
  expect((await reportOf({ since, siteId: randomUUID() })).paths).toEqual([])
  const wrong = [
    { since: new Date(now() - 93 * 24 * hourMs).toISOString() },
    { until: since, since: new Date(now()).toISOString() },
  ]
  for (const input of wrong) expect(await site().tryQuery('network.report', input)).toMatchObject({ code: 'invalid' })
})

test('a period that ends before it begins is refused before a file begins', async () => {
  const at = new Date(now()).toISOString()
  const address = `${site().api.url}/api/v1/network-exports?since=${at}&until=${at}`
  expect((await fetch(address, { headers: { cookie: site().cookie } })).status).toBe(400)
})

test('the file has a line for each path, and is read by spreadsheets without running anything', async () => {
  const [mac = ''] = site().tenant.macs
  await site().report(measured(mac, { machine: { ...machine, driver: '=cmd()' } }))
  const answer = await fetch(`${site().api.url}/api/v1/network-exports?format=csv`, {
    headers: { cookie: site().cookie },
  })
  expect(answer.status).toBe(200)
  const [row] = parse(await answer.text(), { bom: true, columns: true }) as Record<string, string>[]
  expect(row).toMatchObject({ segment: '10.1.2.0/24', bootCount: '1', toDeviceLost: '200', rttP95Us: '300' })
  expect(row?.card).not.toMatch(/^=/)
  expect(row?.faults).toMatch(/half duplex/)
})
