import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { MachineSite } from '../lib/lab/machine-site.ts'

const reads = 5
const leftKib = 16 << 10
/**
 * Reads the whole disk, not from the machine's own memory, while another process holds all memory but a little, as
 * `stress-ng --vm` does.
 */
const script = `
pid() { status=$(bootfarm-target status); status=\${status#*'"pid":'}; echo "\${status%%,*}"; }
of() { busybox sed -n "s/^$2: *\\([0-9]*\\) kB/\\1/p" "$1"; }
read_disk() { echo 3 >/proc/sys/vm/drop_caches; echo "SUM $(md5sum </blob | cut -d' ' -f1)"; }
before=$(pid)
read_disk
held=$(($(of /proc/meminfo MemAvailable) - ${leftKib}))
{ busybox head -c "\${held}k" /dev/zero; busybox sleep 10000; } | busybox tail -c "\${held}k" >/dev/null &
holder=$!
until rss=$(busybox sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$holder/status) && [ "\${rss:-0}" -ge "$held" ]; do :; done
echo "HELD $held KiB, $(of /proc/meminfo MemAvailable) KiB left"
for read in $(seq ${reads}); do read_disk; done
kill -KILL $holder
read_disk
[ "$(pid)" = "$before" ] && echo "THE SAME PROCESS"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite

describe.skipIf(missing)(`a machine that is short of memory${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('memory', { script, blobSize: 2 << 20 })
    await site.startEdge('proxy')
  })
  afterAll(async () => {
    await site.remove()
  })

  test('reads its disk on, by the same process', { timeout: 240_000 }, async () => {
    const machine = await site.powerOn('bios')
    expect(await machine.ended).toBe(0)
    expect(machine.output).toMatch(/^HELD \d{5,} KiB/m)
    const sums = [...machine.output.matchAll(/^SUM (\w+)/gm)].map(([, sum]) => sum)
    expect(sums).toEqual(Array(reads + 2).fill(site.disk.blobSum))
    expect(machine.output).not.toMatch(/I\/O error/)
    expect(machine.output).toMatch(/^THE SAME PROCESS/m)
    expect(machine.output).toMatch(/^ACKNOWLEDGED/m)
  })
})
