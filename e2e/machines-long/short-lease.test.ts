import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { MachineSite } from '../lib/lab/machine-site.ts'
import { edgeProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const leaseSeconds = 30
/** The image has no DHCP client; it runs for longer than the lease that the initramfs took. */
const script = `
echo "BOOTED"
busybox sleep ${3 * leaseSeconds}
echo 3 >/proc/sys/vm/drop_caches
echo "SUM $(md5sum </blob | cut -d' ' -f1)"
echo "WAITED"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite

interface Lease {
  ip: string
  state: string
  until: string | null
}

/** Returns the addresses that are leased now, with the end of each lease in ms since 1970. */
async function leases(): Promise<Map<string, number>> {
  const list = new RunningProcess(edgeProgram, ['leases', '--data', site.edgeData, '--json'])
  expect(await list.ended, list.output).toBe(0)
  const bound = list.jsonLines<Lease>().filter(({ state }) => state === 'bound')
  return new Map(bound.map(({ ip, until }) => [ip, Date.parse(until ?? '')]))
}

describe.skipIf(missing)(`a machine whose lease is short${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('lease', { script, blobSize: 1 << 20 }, { dhcpServer: false })
    const subnet = `${site.segment.edgeIp.replace(/\.\d+$/, '.0')}/24,lease=${leaseSeconds}s`
    await site.startEdge('server', '', ['--subnet', subnet])
  })
  afterAll(async () => {
    await site.remove()
  })

  test('keeps its address without a DHCP client in its image', { timeout: 240_000 }, async () => {
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^BOOTED\r?$/m)
    const before = await leases()
    await machine.waitFor(/^WAITED\r?$/m)
    const after = await leases()
    expect(await machine.ended).toBe(0)
    expect(machine.output).toContain(`SUM ${site.disk.blobSum}`)
    expect(machine.output).toMatch(/^ACKNOWLEDGED/m)
    expect([...before.keys()]).toEqual([...after.keys()])
    expect(before.size).toBe(1)
    for (const [ip, until] of before) expect(after.get(ip)).toBeGreaterThan(until + 1000 * leaseSeconds)
  })
})
