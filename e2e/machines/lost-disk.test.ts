import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** Writes without end; what it has written is lost with the edge's process. */
const script = `
for round in $(seq 1000000); do
  head -c 40000 /blob >/written
  sync
  echo "WRITTEN $round"
done
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess
const start = () => site.startEdge('proxy', 'bootfarm.lost=restart,5', ['--write-cache', 'edge'])

describe.skipIf(missing)(`a machine whose disk is lost for good${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('lost', { script, blobSize: 1 << 20 })
    edge = await start()
  })
  afterAll(async () => {
    await site.remove()
  })

  test('says why on its console, and restarts by itself', async () => {
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^WRITTEN 1\r?$/m)
    edge.kill('SIGKILL')
    await edge.ended
    edge = await start()
    expect(await machine.ended, 'an emulator that may not restart its machine ends').toBe(0)
    expect(machine.output).toMatch(/the edge has lost the writes of this machine; the disk is halted/)
    expect(machine.output).toMatch(/the disk is lost for good; restarting this machine in 5 s/)
    expect(machine.output).toMatch(/the disk is lost for good; restarting this machine now/)
    expect(machine.output).toMatch(/reboot: Restarting system/)
    const report = await finishedBoot(edge, (boot) => boot.outcome?.kind === 'failed')
    expect(report.outcome).toMatchObject({ cause: 'write_cache_lost' })
  })
})
