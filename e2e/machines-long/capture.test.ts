import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { ControlledMachines } from '../lib/lab/controlled-machines.ts'
import { edgeProgram } from '../lib/lab/programs.ts'

interface Version {
  id: string
  number: number
  access: string | null
  revision: number
}
interface Job {
  state: string
  untrusted: { message: string | null }
}

const minute = 60_000
/** Two pieces of a copy and a part of a third one: not a multiple of 64 MiB, nor of 1 MiB. */
const diskSize = (150 << 20) + 4096
const missing = machinesMissing()
let site: ControlledMachines
let disk: string
let other: string

const vdisk = () =>
  site.api.query<{ revision: number; versions: Version[] }>('vdisk.get', { vdiskId: site.tenant.vdiskId })
const version = async (number: number): Promise<Version> => {
  const found = (await vdisk()).versions.find((one) => one.number === number)
  if (!found) throw new Error(`there is no version ${number}`)
  return found
}

async function done(jobIds: string[]): Promise<void> {
  const over = await site.eventually('end of the job', async () => {
    const job = await site.api.query<Job>('storeJob.get', { jobId: jobIds[0] })
    if (job.state === 'queued' || job.state === 'running') throw new Error(JSON.stringify(job))
    return job
  })
  expect(over.state, over.untrusted.message ?? '').toBe('done')
}

const store = () => path.join(site.machines.edgeData, 'store')
const sumOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

/** Writes a byte pattern into a file at an offset. */
function put(file: string, offset: number, bytes: Buffer): void {
  const fd = openSync(file, 'r+')
  writeSync(fd, bytes, 0, bytes.length, offset)
  closeSync(fd)
}

describe.skipIf(missing)(`the capture of a machine's own disk${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = await ControlledMachines.start('capture', 'bootfarm-target ready busybox', ['maintenance'])
    // A disk with a file system at its start, data and zeros behind it, and data in its last sector.
    disk = site.machines.file('own.raw', readFileSync(site.machines.disk.image))
    truncateSync(disk, diskSize)
    put(disk, 70 << 20, Buffer.alloc(3 << 20, 'data'))
    put(disk, 130 << 20, Buffer.alloc(100_000, 'more'))
    put(disk, diskSize - 512, Buffer.alloc(512, 'end'))
    other = site.machines.file('other.raw', Buffer.alloc(1 << 20, 1))
    const { jobIds } = await site.api.mutate<{ jobIds: string[] }>('version.import', {
      vdiskId: site.tenant.vdiskId,
      edgeId: site.edgeId,
      emptySizeBytes: diskSize,
      kernelPath: 'images/vmlinuz',
      initrdPath: 'images/initrd.img',
      commandLine: `${site.machines.commandLine} bootfarm.capture=auto`,
    })
    await done(jobIds)
    const { id: versionId } = await version(2)
    const { revision: vdiskRevision } = await vdisk()
    const deviceId = site.tenant.deviceIds[0]
    await site.api.mutate('version.startMaintenance', { versionId, vdiskRevision, deviceId })
    await site.untilBoots(0, (await version(3)).id, true)
  }, 3 * minute)
  afterAll(async () => {
    await site?.remove()
  })

  test('is refused where the machine has several, which its boot and its console name', {
    timeout: 4 * minute,
  }, async () => {
    site.machines.ownDisks = [disk, other]
    const before = sumOf(other)
    const machine = await site.machines.powerOn('bios')
    await machine.waitFor(/name one of 2 disks: vda vdb/)
    expect(machine.output).toMatch(new RegExp(`disk vda: ${diskSize} bytes`))
    expect(machine.output).toMatch(new RegExp(`disk vdb: ${1 << 20} bytes`))
    await machine.ended
    const failed = await site.eventually('report of the failure', async () => {
      const { items } = await site.api.query<{ items: { id: string; outcome: string | null }[] }>('boot.list', {})
      return items.find(({ outcome }) => outcome === 'failed')
    })
    const { cause } = await site.api.query<{ cause: { deviceText: string | null } }>('boot.get', { bootId: failed.id })
    expect(cause.deviceText).toMatch(/no_capture: name one of 2 disks: vda vdb/)
    expect(sumOf(other)).toBe(before)
  })

  test('starts over after an interruption, and makes a version with the same bytes', {
    timeout: 8 * minute,
  }, async () => {
    site.machines.ownDisks = [disk]
    const interrupted = await site.machines.powerOn('bios')
    await interrupted.waitFor(/capture of vda: \d+ %/)
    interrupted.kill('SIGKILL')
    await interrupted.ended
    // What was sent already is zero now, and other bytes are where zeros were.
    put(disk, 20 << 20, Buffer.alloc(4096, 'new'))
    put(disk, 70 << 20, Buffer.alloc(1 << 20))
    const sum = sumOf(disk)
    const machine = await site.machines.powerOn('bios')
    await machine.waitFor(/capture of vda is whole/)
    expect(await machine.ended).toBe(0)
    expect(machine.output).toMatch(/the disk is captured: the machine switches itself off/)
    expect(sumOf(disk)).toBe(sum)
    const maintained = await version(3)
    const { jobIds } = await site.eventually('leave to seal', () =>
      site.api.mutate<{ jobIds: string[] }>('version.seal', {
        versionId: maintained.id,
        revision: maintained.revision,
        bootFiles: 'none',
      }),
    )
    await done(jobIds)
    const exported = site.machines.file('exported.raw', Buffer.alloc(0))
    execFileSync(edgeProgram, ['vdisk', 'export', exported, '--force', '--store', store(), '--version', maintained.id])
    expect(sumOf(exported)).toBe(sum)
  })
})
