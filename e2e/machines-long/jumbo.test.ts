import type { BootReport } from '@bootfarm/proto/uplink'
import { afterEach, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { type EdgeDhcp, finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'

/** Reads a file larger than everything that the system reads, and prints the result. */
const blobSize = 16 << 20
const bootLimitMs = 240_000
const jumboMtu = 9000
const script = `
echo "MTU $(cat /sys/class/net/e*/mtu)"
echo "BLOB $(md5sum /blob)"
echo "STATUS $(bootfarm-target status)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
/**
 * Bytes of UDP payload: 9000 or 1500, less 28 for IP and UDP, 16 for the header and 16 for the tag (STREAM.md, "Packet
 * sizes").
 */
const jumboFragment = 8940
const ethernetFragment = 1440
const typeRead = 5
const missing = machinesMissing()
let site: MachineSite

interface Status {
  readBytes: number
  packetsIn: number
}

/** A READ as it was on the wire: the fragment size that it asks for, and the last 8 bytes of its header. */
interface SeenRead {
  fragmentSize: number
  counter: bigint
}

interface JumboBoot {
  report: BootReport
  status: Status
  reads: SeenRead[]
}

interface Network {
  /** What the card comes up with; undefined: Ethernet's. */
  cardMtu?: number | undefined
  /** What the system's card has in the end. */
  systemMtu?: number
  dhcp?: EdgeDhcp
}

/** Boots a machine, and reads the blob. */
async function boot(more: string[] = [], network: Network = { cardMtu: jumboMtu }): Promise<JumboBoot> {
  const { cardMtu, systemMtu = jumboMtu, dhcp = 'proxy' } = network
  const edge = await site.startEdge(dhcp, '', more)
  site.mtu = cardMtu
  const machine = await site.powerOn('bios')
  await machine.waitFor(/^ACKNOWLEDGED/m)
  expect(machine.output).toMatch(new RegExp(`^MTU ${systemMtu}`, 'm'))
  expect(machine.output.match(/^BLOB (\w{32})/m)?.[1]).toBe(site.disk.blobSum)
  expect(machine.output).not.toMatch(/I\/O error/)
  const status = JSON.parse(machine.output.match(/^STATUS (.*)$/m)?.[1] ?? '{}') as Status
  const report = await finishedBoot(edge)
  const reads = (await site.packets())
    .filter(({ destinationPort, payload }) => destinationPort === 6910 && payload[1] === typeRead)
    .map(({ payload }) => ({ fragmentSize: payload.readUInt16BE(2), counter: payload.readBigUInt64BE(8) }))
  expect(reads.length).toBeGreaterThan(blobSize / (1 << 20))
  return { report, status, reads }
}

const sizesOf = (reads: SeenRead[]) => [...new Set(reads.map(({ fragmentSize }) => fragmentSize))]

describe.skipIf(missing)(`a machine on a network of jumbo frames${missing ? ` (${missing})` : ''}`, () => {
  afterEach(async () => {
    await site.remove()
  })

  test('uses them from its first read on, with nothing configured', {
    timeout: bootLimitMs,
  }, async () => {
    site = new MachineSite('jumbo', { script, blobSize })
    site.segment.takeLargePackets(jumboMtu)
    const { report, status, reads } = await boot()
    expect(sizesOf(reads)).toEqual([jumboFragment])
    expect(report).toMatchObject({ mtu: jumboMtu, outcome: { kind: 'ready' } })
    expect(['aegis_128l', 'chacha20_poly1305']).toContain(report.cipher)
    // Each packet has its own counter.
    expect(new Set(reads.map(({ counter }) => counter)).size).toBe(reads.length)
    // Some reads are of 4 KiB.
    expect(status.readBytes / status.packetsIn).toBeGreaterThan(jumboFragment / 2)
  })

  test('uses them on a card that comes up with 1500, where the DHCP server says so', {
    timeout: bootLimitMs,
  }, async () => {
    site = new MachineSite('jumbodhcp', { script, blobSize }, { dhcpServer: false })
    site.segment.takeLargePackets(jumboMtu)
    site.startDhcpServer([`--dhcp-option=26,${jumboMtu}`])
    const { report, reads } = await boot([], {})
    expect(sizesOf(reads)).toEqual([jumboFragment])
    expect(report).toMatchObject({ mtu: jumboMtu, outcome: { kind: 'ready' } })
  })

  test('reads in clear text where its edge says so, and its boot shows it', {
    timeout: bootLimitMs,
  }, async () => {
    site = new MachineSite('jumboclear', { script, blobSize })
    site.segment.takeLargePackets(jumboMtu)
    const { report, status, reads } = await boot(['--clear'])
    expect(sizesOf(reads)).toEqual([jumboFragment])
    expect(report).toMatchObject({ cipher: 'clear', outcome: { kind: 'ready' } })
    // In clear text these are the session's id, and the boot has one session.
    expect(new Set(reads.map(({ counter }) => counter)).size).toBe(1)
    expect(status.readBytes / status.packetsIn).toBeGreaterThan(jumboFragment / 2)
  })

  test('boots where the switch drops them silently', { timeout: bootLimitMs }, async () => {
    site = new MachineSite('jumbohole', { script, blobSize })
    site.segment.takeLargePackets(jumboMtu)
    site.segment.dropLargerThan(1500)
    const { report, status, reads } = await boot()
    expect(sizesOf(reads)).toEqual([ethernetFragment])
    expect(report).toMatchObject({ mtu: 1500, outcome: { kind: 'ready' } })
    expect(report.network).toMatchObject({ mtu: jumboMtu, sizeMax: 8972, size: 1472, lostSize: 4052 })
    expect(report.network?.lostSizeCount).toBeGreaterThanOrEqual(3)
    expect(status.readBytes / status.packetsIn).toBeLessThan(ethernetFragment)
  })

  test('boots a card that comes up with 9000 at an edge and a switch of 1500', { timeout: bootLimitMs }, async () => {
    site = new MachineSite('jumbocard', { script, blobSize })
    const { report, reads } = await boot()
    expect(sizesOf(reads).at(-1)).toBe(ethernetFragment)
    expect(report).toMatchObject({ mtu: 1500, outcome: { kind: 'ready' } })
  })

  test('boots a card that comes up with 9000 where the edge leases addresses, and jumbo frames with them', {
    timeout: bootLimitMs,
  }, async () => {
    site = new MachineSite('jumboserver', { script, blobSize }, { dhcpServer: false })
    site.segment.takeLargePackets(jumboMtu)
    const { report, reads } = await boot(['--subnet', `${site.segment.subnet},mtu=${jumboMtu}`], {
      cardMtu: jumboMtu,
      dhcp: 'server',
    })
    expect(sizesOf(reads)).toEqual([jumboFragment])
    expect(report).toMatchObject({ mtu: jumboMtu, outcome: { kind: 'ready' } })
  })

  test('boots a card that comes up with 9000 where the DHCP server says 1500', { timeout: bootLimitMs }, async () => {
    site = new MachineSite('jumboless', { script, blobSize }, { dhcpServer: false })
    site.segment.takeLargePackets(jumboMtu)
    site.startDhcpServer(['--dhcp-option=26,1500'])
    const { report, reads } = await boot([], { cardMtu: jumboMtu, systemMtu: 1500 })
    expect(sizesOf(reads)).toEqual([ethernetFragment])
    expect(report).toMatchObject({ mtu: 1500, outcome: { kind: 'ready' } })
  })
})
