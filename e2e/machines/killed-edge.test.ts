import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { orderIdOf } from '../lib/edge/enrolled-edge.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/**
 * The machine reads its disk over and over, never from its own memory, and reports ready at the end. In its last rounds
 * it crashes the program that serves its disk, as a fault would. Then it waits to be switched off, as busybox's init
 * is.
 */
const rounds = 6
const script = `
trap 'ordered=yes' USR2
crash_target() {
  # Something is read, and the program at work.
  until status=$(bootfarm-target status) && case $status in *'"readsWaiting":0,'*) false ;; esac; do
    kill -0 $reading 2>/dev/null || break
  done
  pid=\${status#*'"pid":'}
  kill -SEGV "\${pid%%,*}"
  echo "CRASHED $status"
}
for round in 1 2 3 4 5 6; do
  echo 3 >/proc/sys/vm/drop_caches
  md5sum /blob >/sum &
  reading=$!
  [ $round -ge 5 ] && crash_target
  # A signal ends waiting before its time.
  until wait; do :; done
  echo "SUM $round $(cat /sum)"
done
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
until [ "$ordered" ]; do sleep 1; done
echo "ORDERED"
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

const sums = (output: string) => [...output.matchAll(/^SUM \d+ (\w{32})/gm)].map(([, sum]) => sum)

describe.skipIf(missing)(`a machine that loses 1 % of its packets${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('killed', { script, blobSize: 8 << 20 })
    edge = await site.startEnrolledEdge([{}])
    site.segment.loseEach(1)
  })

  afterAll(async () => {
    await site.remove()
  })

  test('keeps reading in the same boot when its edge or its own program is killed, and takes a power order', async () => {
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^SUM 2 /m)
    edge.kill('SIGKILL')
    await edge.ended
    const before = sums(machine.output).length
    expect(before, 'the edge was killed while the machine still had to read').toBeLessThan(rounds - 1)
    // Long enough for the machine to ask in vain; its patience has no end.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(sums(machine.output).length, 'nothing is read without an edge').toBeLessThanOrEqual(before + 1)

    const restarted = await site.startEnrolledEdge([{}], [{ port: 0, order: 'power_off' }])
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(sums(machine.output)).toEqual(Array(rounds).fill(site.disk.blobSum))
    expect(machine.output).toMatch(/serves the disk again/)
    const crashed = [...machine.output.matchAll(/^CRASHED .*"readsWaiting":(\d+)/gm)].map(([, count]) => count)
    expect(crashed, 'each crash came while the machine read').toEqual([
      expect.not.stringMatching(/^0$/),
      expect.not.stringMatching(/^0$/),
    ])
    expect(machine.output.match(/talks to the edge ended \(signal 11\); starting another/g)).toHaveLength(2)
    expect(machine.output).not.toMatch(/I\/O error/)

    expect(machine.output).toMatch(/the edge orders this machine to power off/)
    await machine.waitFor(/^ORDERED/m)
    expect(await machine.ended, 'the machine switched itself off').toBe(0)

    const report = await finishedBoot(restarted)
    expect(report.outcome).toEqual({ kind: 'ready' })
    expect(report.guest?.powerOrderId).toBe(orderIdOf(0))
    expect(report.reconnects).toBeGreaterThan(0)
    expect(report.phases.map(({ name }) => name)).toEqual(expect.arrayContaining(['dhcp', 'loader', 'stage2', 'ready']))
  })
})
