import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/machine-site.ts'
import type { RunningProcess } from '../lib/running-process.ts'

/** The machine reads its disk again and again, never from its own memory, and reports ready at the end. */
const rounds = 6
const script = `
for round in 1 2 3 4 5 6; do
  echo 3 >/proc/sys/vm/drop_caches
  echo "SUM $round $(md5sum /blob)"
done
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

const sums = (output: string) => [...output.matchAll(/^SUM \d+ (\w{32})/gm)].map(([, sum]) => sum)

describe.skipIf(missing)(`a machine that loses 1 % of its packets${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('killed', script, 8 << 20)
    edge = await site.startEdge()
    site.segment.loseEach(1)
  })

  afterAll(async () => {
    await site.remove()
  })

  test('goes on reading when its edge is killed and started again, in the same boot', async () => {
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^SUM 2 /m)
    edge.kill('SIGKILL')
    await edge.ended
    const before = sums(machine.output).length
    expect(before, 'the edge was killed while the machine still had to read').toBeLessThan(rounds - 1)
    // Long enough for the machine to ask in vain, and much shorter than its patience, which has no end.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(sums(machine.output).length, 'nothing is read without an edge').toBeLessThanOrEqual(before + 1)

    const restarted = await site.startEdge()
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(sums(machine.output)).toEqual(Array(rounds).fill(site.disk.blobSum))
    expect(machine.output).toMatch(/serves the disk again/)
    expect(machine.output).not.toMatch(/I\/O error/)

    const report = await finishedBoot(restarted)
    expect(report.outcome).toEqual({ kind: 'ready' })
    expect(report.reconnects).toBeGreaterThan(0)
    expect(report.phases.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['dhcp', 'loader', 'stage2', 'ready']),
    )
  })
})
