import { readdirSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { ControlledMachines } from '../lib/lab/controlled-machines.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

interface Version {
  id: string
  number: number
  access: string | null
  revision: number
  sealedAt: string | null
}
interface Job {
  id: string
  state: string
  untrusted: { message: string | null }
}

/** Prints the notes that it finds, writes one if there is none, and runs until it is stopped. */
const script = `
echo "FOUND $(cat /note 2>/dev/null || echo nothing)"
if [ ! -e /note ]; then
  echo changed >/note
  sync
  echo "WROTE"
fi
bootfarm-target ready busybox && echo "RUNS"
read word
`
const minute = 60_000
const [writer, tester, production] = [0, 1, 2]
const missing = machinesMissing()
let site: ControlledMachines

const vdisk = () =>
  site.api.query<{ revision: number; versions: Version[] }>('vdisk.get', { vdiskId: site.tenant.vdiskId })
const version = async (number: number): Promise<Version> => {
  const found = (await vdisk()).versions.find((one) => one.number === number)
  if (!found) throw new Error(`there is no version ${number}`)
  return found
}
const change = async <T>(procedure: string, input: object): Promise<T> =>
  site.api.mutate<T>(procedure, { vdiskRevision: (await vdisk()).revision, ...input })

async function done(jobIds: string[]): Promise<void> {
  const over = await site.eventually('end of the job', async () => {
    const job = await site.api.query<Job>('storeJob.get', { jobId: jobIds[0] })
    return job.state === 'queued' || job.state === 'running' ? undefined : job
  })
  expect([over.state, over.untrusted.message]).toEqual(['done', null])
}

async function boots(port: number, found: string): Promise<RunningProcess> {
  const machine = await site.machines.powerOn('bios', port)
  await machine.waitFor(/^RUNS/m)
  expect(machine.output).toMatch(new RegExp(`^FOUND ${found}\r?$`, 'm'))
  return machine
}

async function shutDown(machine: RunningProcess): Promise<void> {
  machine.write('off\n')
  expect(await machine.ended).toBe(0)
}

describe.skipIf(missing)(`a version that a machine writes${missing ? ` (${missing})` : ''}`, () => {
  let base: Version
  let maintained: Version

  beforeAll(async () => {
    site = await ControlledMachines.start('maint', script, ['maintenance', 'test', 'production'])
    const { jobIds } = await site.api.mutate<{ jobIds: string[] }>('version.import', {
      vdiskId: site.tenant.vdiskId,
      edgeId: site.edgeId,
      state: 'released',
      sourcePath: 'images/disk.raw',
      kernelPath: 'images/vmlinuz',
      initrdPath: 'images/initrd.img',
      commandLine: site.machines.commandLine,
    })
    await done(jobIds)
    base = await version(2)
    expect(base.access).toBe('default')
  }, 3 * minute)
  afterAll(async () => {
    await site?.remove()
  })

  test('survives a kill -9 of the edge and the absence of the control plane', {
    timeout: 5 * minute,
  }, async () => {
    const deviceId = site.tenant.deviceIds[writer]
    await change('version.startMaintenance', { versionId: base.id, deviceId })
    maintained = await version(3)
    await site.untilBoots(writer, maintained.id, true)
    site.plane.api.kill('SIGKILL')
    await site.plane.api.ended
    const machine = await boots(writer, 'nothing')
    expect(machine.output).toMatch(/^WROTE/m)
    expect(machine.output).toMatch(/writes kept at the edge/)
    await site.killEdge()
    await shutDown(machine)
    await site.plane.killApi()
  })

  test('keeps its content, and is not sealed while its machine runs', {
    timeout: 5 * minute,
  }, async () => {
    const machine = await boots(writer, 'changed')
    await site.eventually('report of the boot', async () => {
      const { lastBoot } = await site.api.query<{
        lastBoot: { outcome: string | null; versionId: string } | null
      }>('device.get', { deviceId: site.tenant.deviceIds[writer] })
      return lastBoot?.outcome === 'ready' || undefined
    })
    const seal = () => site.api.mutate<{ jobIds: string[] }>('version.seal', sealing)
    const sealing = { versionId: maintained.id, revision: (await version(3)).revision, bootFiles: 'parent' }
    await expect(seal()).rejects.toThrow(/pc-01 still runs from version 3: shut it down first/)
    await shutDown(machine)
    // The machine's own system has shut down: the edge hears nothing from it any more.
    const { jobIds } = await site.eventually('leave to seal', seal)
    await done(jobIds)
    expect(await version(3)).toMatchObject({ access: 'test' })
    expect(layers()).toEqual([])
  })

  test('is booted by test devices, then by all, and is reverted', { timeout: 8 * minute }, async () => {
    await site.untilBoots(tester, maintained.id)
    await site.untilBoots(writer, maintained.id)
    await site.untilBoots(production, base.id)
    await shutDown(await boots(tester, 'changed'))
    await change('version.promote', { versionId: maintained.id })
    await site.untilBoots(production, maintained.id)
    await shutDown(await boots(production, 'changed'))
    await change('version.revert', { versionId: base.id })
    await site.untilBoots(production, base.id)
    await shutDown(await boots(production, 'nothing'))
  })

  test('leaves no device with the writes of another version: they are unavailable after a promote, and return after a revert', {
    timeout: 10 * minute,
  }, async () => {
    const { vdiskId } = site.tenant
    const { revision } = await vdisk()
    const writeCache = { class: 'edge_persistent', limitBytes: 64 << 20, full: 'stop' }
    await site.api.mutate('vdisk.updateWriteCache', { vdiskId, revision, ...writeCache })
    await site.untilState(({ vdisks }) =>
      vdisks.some((one) => one.id === vdiskId && one.writeCache?.class === 'edge_persistent'),
    )
    await shutDown(await boots(production, 'nothing'))
    await shutDown(await boots(production, 'changed'))

    const { jobIds } = await change<{ jobIds: string[] }>('version.merge', {
      versionId: maintained.id,
      into: 'base',
    })
    await done(jobIds)
    const merged = await version(4)
    expect(merged.access).toBe('test')
    await change('version.promote', { versionId: merged.id })
    await site.untilBoots(production, merged.id)
    const machine = await site.machines.powerOn('bios', production)
    await machine.waitFor(/belong to another version of its disk/)
    expect(machine.output).not.toMatch(/^FOUND/m)
    await machine.stop()
    await site.edge.waitFor(/"write_cache_of_another_version"/)

    await change('version.revert', { versionId: base.id })
    await site.untilBoots(production, base.id)
    await shutDown(await boots(production, 'changed'))
  })
})

function layers(): string[] {
  return readdirSync(path.join(site.machines.edgeData, 'store/layers'))
}
