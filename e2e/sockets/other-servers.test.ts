import { bootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const missing = namespacesMissing()
const scratch = scratchDirectory()
let segment: Segment
const running: RunningProcess[] = []

describe.skipIf(missing)(`beside another DHCP server${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(() => {
    segment = new Segment('offers')
    segment.addSwitchAddress()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop()))
  })
  afterAll(() => {
    segment?.remove()
    scratch.remove()
  })

  async function start(server: string[]): Promise<RunningProcess> {
    const files = makeBootFiles(scratch.path, 64)
    const { command, args } = segment.dhcpServer(server)
    const dhcp = new RunningProcess(command, args)
    running.push(dhcp)
    const edge = segment.startOnEdge(edgeProgram, [
      'serve',
      '--listen',
      segment.edgeIp,
      '--dhcp',
      'proxy',
      '--silence-limit',
      '2',
      '--json',
      ...serveArguments(files),
    ])
    running.push(edge)
    await edge.waitFor(/serving on/)
    await dhcp.waitFor(/DHCP, IP range/)
    return edge
  }

  function boot(...args: string[]) {
    return bootDevices(['--server', segment.edgeIp, '--interface', 'br0', ...args], (program, all) =>
      segment.startOnSwitch(program, all),
    )
  }

  test('a device that takes the other server’s boot file fails by that, and the boot names both offers', async () => {
    const edge = await start([`--dhcp-boot=pxelinux.0,other,${segment.dhcpIp}`, '--dhcp-broadcast'])
    await boot('--misbehave', 'dhcp-only')
    const [boot1] = (await printedBoots(edge, 1)).map((line) => bootReport.parse(line))
    expect(boot1?.outcome).toEqual({
      kind: 'failed',
      phase: 'dhcp',
      cause: 'other_offer_won',
      text: `${segment.dhcpIp} pxelinux.0`,
    })
    const offers = boot1?.offers ?? []
    const ours = offers.find((offer) => offer.ours)
    const other = offers.find((offer) => !offer.ours)
    expect(ours).toMatchObject({ server: segment.edgeIp, kind: 'proxy', vendorClass: 'PXEClient' })
    expect(ours?.file).toMatch(/^b\/[0-9a-f]{16}\/undionly\.kpxe$/)
    expect(other).toMatchObject({
      server: segment.dhcpIp,
      kind: 'both',
      file: 'pxelinux.0',
      nextServer: segment.dhcpIp,
    })
    expect(other?.yourIp).toMatch(/^10\.78\.0\.\d\d$/)
    expect(boot1?.lastPackets?.fromDevice?.what).toBe(`DHCP REQUEST to ${segment.dhcpIp}`)
  })

  test('a device that falls silent beside a plain DHCP server is silent, with both last packets', async () => {
    const edge = await start([])
    await boot('--misbehave', 'dhcp-only', '--first-mac', '02:bf:00:00:01:01')
    const [boot1] = (await printedBoots(edge, 1)).map((line) => bootReport.parse(line))
    expect(boot1?.outcome).toEqual({ kind: 'silent', phase: 'dhcp' })
    expect(boot1?.offers?.map(({ ours, kind }) => [ours, kind]).sort()).toEqual([
      [false, 'address'],
      [true, 'proxy'],
    ])
    expect(boot1?.lastPackets?.fromDevice?.what).toBe(`DHCP REQUEST to ${segment.dhcpIp}`)
    expect(boot1?.lastPackets?.fromEdge?.what).toBe('DHCP OFFER')
  })
})
