import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite, type SiteVersion } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** It ignores the signal that tells busybox's init to end. */
const script = `
bootfarm-target ready busybox
echo "RUNNING"
while :; do sleep 1; done
`
/** How long the running target gives its system, in seconds. */
const graceS = 120
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

describe.skipIf(missing)(`a machine whose system does not shut down${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('order', { script, blobSize: 1 << 20 })
    edge = await site.startEnrolledEdge([{}])
  })

  afterAll(async () => {
    await site.remove()
  })

  test('is restarted by its kernel after a grace period', { timeout: 400_000 }, async () => {
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^RUNNING/m)
    expect((await finishedBoot(edge)).outcome).toEqual({ kind: 'ready' })
    edge.kill('SIGKILL')
    await edge.ended
    await site.startEnrolledEdge([{}], [{ port: 0, order: 'restart' }])
    await machine.waitFor(/the edge orders this machine to restart/)
    const orderedAt = performance.now()
    expect(await machine.ended, 'an emulator that may not restart its machine ends').toBe(0)
    expect(performance.now() - orderedAt, 'the system had its time').toBeGreaterThan(0.9 * graceS * 1000)
    expect(machine.output).toMatch(/the system has not stopped the machine; the kernel stops it now/)
    expect(machine.output).toMatch(/reboot: Restarting system/)
  })
})

describe.skipIf(missing)(`a machine whose disk is lost for good${missing ? ` (${missing})` : ''}`, () => {
  let lost: MachineSite
  afterAll(async () => {
    await lost?.remove()
  })

  test('waits where that is configured, and is restarted by an order', { timeout: 300_000 }, async () => {
    const writing = `
for round in $(seq 1000000); do
  head -c 40000 /blob >/written
  sync
  echo "WRITTEN $round"
done
`
    lost = new MachineSite('wait', { script: writing, blobSize: 1 << 20 })
    const version: SiteVersion = { commandLine: 'bootfarm.lost=wait', writeCache: { class: 'edge', full: 'stop' } }
    const before = await lost.startEnrolledEdge([version])
    const machine = await lost.powerOn('bios')
    await machine.waitFor(/^WRITTEN 1\r?$/m)
    before.kill('SIGKILL')
    await before.ended
    const after = await lost.startEnrolledEdge([version])
    await machine.waitFor(/the disk is lost for good; restart this machine \(bootfarm\.lost=wait\)/)
    after.kill('SIGKILL')
    await after.ended
    await lost.startEnrolledEdge([version], [{ port: 0, order: 'restart' }])
    await machine.waitFor(/the edge orders this machine to restart/)
    expect(await machine.ended).toBe(0)
    expect(machine.output).toMatch(/reboot: Restarting system/)
  })
})
