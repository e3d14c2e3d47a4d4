import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { MachineSite } from '../lib/lab/machine-site.ts'

/**
 * Uses the first nbd device itself, then kills the process that holds the disk while nothing is read, twice, and reads
 * the disk after each time, not from the machine's own memory.
 */
const script = `
echo "DISK $(cat /run/bootfarm/disk)"
busybox nbd-client -d /dev/nbd0
round() { echo 3 >/proc/sys/vm/drop_caches; echo "SUM $(md5sum </blob | cut -d' ' -f1)"; }
field() { grep "^$2:" "/proc/$1/status" | busybox tr -cd 0-9; }
round
for time in 1 2; do
  status=$(bootfarm-target status)
  stream=\${status#*'"pid":'}
  stream=\${stream%%,*}
  kill -KILL "$(field $stream PPid)"
  until status=$(bootfarm-target status) && case $status in *'"pid":'$stream,*) false ;; esac; do :; done
  round
done
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite

describe.skipIf(missing)(`a machine that uses the first nbd device itself${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('nbd', { script, blobSize: 1 << 20 })
    await site.startEdge('proxy', 'bootfarm.disk=nbd5')
  })
  afterAll(async () => {
    await site.remove()
  })

  test('has its disk on another one, and keeps it when the process that holds it is killed', async () => {
    const machine = await site.powerOn('bios')
    expect(await machine.ended).toBe(0)
    expect(machine.output).toMatch(/^DISK nbd5\r?$/m)
    expect(machine.output).toMatch(/root disk \/dev\/nbd5,/)
    const sums = [...machine.output.matchAll(/^SUM (\w+)/gm)].map(([, sum]) => sum)
    expect(sums).toEqual(Array(3).fill(site.disk.blobSum))
    expect(machine.output.match(/the process of \/dev\/nbd5 was killed; another one serves it/g)).toHaveLength(2)
    expect(machine.output).not.toMatch(/I\/O error/)
    expect(machine.output).toMatch(/^ACKNOWLEDGED/m)
  })
})
