import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { ControlledMachines } from '../lib/lab/controlled-machines.ts'
import { edgeProgram } from '../lib/lab/programs.ts'

interface Job {
  state: string
  untrusted: { message: string | null }
}
interface Capture {
  state: string
  disks: string[]
  sizeBytes: number | null
  version: { id: string } | null
  copied: { bytes: number } | null
  reason: string | null
}

const minute = 60_000
/** Two pieces of a copy and a part of a third one: not a multiple of 64 MiB, nor of 1 MiB. */
const diskSize = (150 << 20) + 4096
const missing = machinesMissing()
let site: ControlledMachines
let disk: string
let other: string

async function done(jobIds: string[]): Promise<void> {
  const over = await site.eventually('end of the job', async () => {
    const job = await site.api.query<Job>('storeJob.get', { jobId: jobIds[0] })
    if (job.state === 'queued' || job.state === 'running') throw new Error(JSON.stringify(job))
    return job
  })
  expect(over.state, over.untrusted.message ?? '').toBe('done')
}

const deviceId = () => site.tenant.deviceIds[0]
const untilCapture = (what: string, is: (capture: Capture) => boolean) =>
  site.eventually(what, async () => {
    const { capture } = await site.api.query<{ capture: Capture | null }>('diskCapture.get', { deviceId: deviceId() })
    if (capture && is(capture)) return capture
    throw new Error(JSON.stringify(capture))
  })

/** The edge knows what the machine is to write. */
async function untilWaits(is: (capture: Capture) => boolean = () => true): Promise<void> {
  const { version } = await untilCapture('capture that waits', (one) => one.state === 'waiting' && is(one))
  await site.untilBoots(0, version?.id ?? '', true)
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
    site = await ControlledMachines.start('capture', 'bootfarm-target ready busybox', ['production'])
    // A disk with a file system at its start, data and zeros behind it, and data in its last sector.
    disk = site.machines.file('own.raw', readFileSync(site.machines.disk.image))
    truncateSync(disk, diskSize)
    put(disk, 70 << 20, Buffer.alloc(3 << 20, 'data'))
    put(disk, 130 << 20, Buffer.alloc(100_000, 'more'))
    put(disk, diskSize - 512, Buffer.alloc(512, 'end'))
    other = site.machines.file('other.raw', Buffer.alloc(1 << 20, 1))
    const { vdiskId } = site.tenant
    // The kernel and the initramfs that the machine boots are those of any version.
    const boots = await site.api.mutate<{ id: string; jobIds: string[] }>('version.import', {
      vdiskId,
      edgeId: site.edgeId,
      sourcePath: 'images/disk.raw',
      kernelPath: 'images/vmlinuz',
      initrdPath: 'images/initrd.img',
      commandLine: site.machines.commandLine,
    })
    await done(boots.jobIds)
    await site.eventually('capture that begins', async () => {
      const { revision } = await site.api.query<{ revision: number }>('device.get', { deviceId: deviceId() })
      const input = { deviceId: deviceId(), revision, bootVersionId: boots.id, vdiskId, bootFiles: 'none' }
      return site.api.mutate<Capture>('diskCapture.start', input)
    })
    await untilWaits()
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
    const asking = await untilCapture('question for the disk', ({ state }) => state === 'asking')
    expect(asking.disks).toEqual(['vda', 'vdb'])
    await site.api.mutate('diskCapture.answer', { deviceId: deviceId(), disk: 'vda' })
    await untilWaits()
  })

  test('names the size of its disk, and finds a version of that size at its next boot', {
    timeout: 4 * minute,
  }, async () => {
    const machine = await site.machines.powerOn('bios')
    await machine.waitFor(/vda has \d+ bytes, the version 1048576/)
    await machine.ended
    await untilWaits(({ sizeBytes }) => sizeBytes === diskSize)
  })

  test('starts over after an interruption, and makes a version with the same bytes', {
    timeout: 8 * minute,
  }, async () => {
    site.machines.ownDisks = [disk]
    const interrupted = await site.machines.powerOn('bios')
    await interrupted.waitFor(/capture of vda: \d+ %/)
    const { copied } = await untilCapture('progress', (one) => one.copied !== null)
    expect(copied?.bytes).toBeLessThanOrEqual(diskSize)
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
    const { version } = await untilCapture('version', ({ state }) => state === 'done')
    const device = await site.api.query<{ deviceType: string }>('device.get', { deviceId: deviceId() })
    expect(device.deviceType).toBe('production')
    const exported = site.machines.file('exported.raw', Buffer.alloc(0))
    execFileSync(edgeProgram, [
      'vdisk',
      'export',
      exported,
      '--force',
      '--store',
      store(),
      '--version',
      version?.id ?? '',
    ])
    expect(sumOf(exported)).toBe(sum)
  })
})
