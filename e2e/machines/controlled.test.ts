import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { ControlledMachines } from '../lib/lab/controlled-machines.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

interface Device {
  id: string
  now: { state: string }
  lastBoot: { id: string; outcome: string | null } | null
  waitsFor: { reason: string; sentence: string } | null
  powerOrder: { id: string; state: string } | null
  keyLabel: string | null
  claimedKey: string | null
  key: { known: string | null }
}

interface FilesRead {
  bytes: number
  namedBytes: number
  files: { name: string }[]
  trace: { state: string; lost: number; namedBytes: number; unitBytes: number } | null
  programs: { name: string; unit: string; bytes: number }[]
}

/** Prints the note that it finds, writes one, and runs until it is stopped. */
const script = `
echo "FOUND $(cat /note 2>/dev/null || echo nothing)"
echo changed >/note
sync
bootfarm-target ready busybox && echo "RUNS"
read word
`
/** The machine of each test, by its port. */
const [lost, known] = [0, 1]
const missing = machinesMissing(['swtpm'])
let site: ControlledMachines

const deviceOf = (port: number) => site.api.query<Device>('device.get', { deviceId: site.tenant.deviceIds[port] })

function deviceWhen(port: number, what: string, is: (device: Device) => boolean): Promise<Device> {
  return site.eventually(what, async () => {
    const device = await deviceOf(port)
    return is(device) ? device : undefined
  })
}

async function keepWritesIn(writeCache: 'edge' | 'private'): Promise<void> {
  const { vdiskId } = site.tenant
  const { revision } = await site.api.query<{ revision: number }>('vdisk.get', { vdiskId })
  await site.api.mutate('vdisk.updateWriteCache', {
    vdiskId,
    revision,
    class: writeCache,
    limitBytes: null,
    full: 'stop',
  })
  await site.untilState(({ vdisks }) => vdisks.some((vdisk) => vdisk.writeCache?.class === writeCache))
}

async function runs(port: number): Promise<RunningProcess> {
  const machine = await site.machines.powerOn('bios', port)
  await machine.waitFor(/^RUNS/m)
  return machine
}

describe.skipIf(missing)(`a machine under a control plane${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = await ControlledMachines.start('ctrl', script, ['production', 'production'])
    await site.api.mutate('version.import', {
      vdiskId: site.tenant.vdiskId,
      edgeId: site.edgeId,
      state: 'released',
      sourcePath: 'images/disk.raw',
      kernelPath: 'images/vmlinuz',
      initrdPath: 'images/initrd.img',
      commandLine: `${site.machines.commandLine} bootfarm.lost=wait`,
    })
    const { versions } = await site.eventually('imported version', async () => {
      const vdisk = await site.api.query<{ versions: { id: string; number: number; access: string | null }[] }>(
        'vdisk.get',
        { vdiskId: site.tenant.vdiskId },
      )
      return vdisk.versions.some(({ number, access }) => number === 2 && access === 'default') ? vdisk : undefined
    })
    const versionId = versions.find(({ number }) => number === 2)?.id ?? ''
    for (const port of [lost, known]) await site.untilBoots(port, versionId)
  })
  afterAll(async () => {
    await site?.remove()
  })

  test('that loses its disk for good is listed, takes an order to restart, and boots', async () => {
    await keepWritesIn('edge')
    const machine = await runs(lost)
    const { lastBoot } = await deviceWhen(lost, 'boot', (device) => device.lastBoot?.outcome === 'ready')
    // Its loader and its initramfs print where its page is.
    const links = machine.output.matchAll(/bootfarm: this boot: http:\/\/[\w.:-]+\/b\/([0-9a-f]{12})\b/g)
    const linkId = lastBoot?.id.replaceAll('-', '').slice(0, 12)
    expect([...links].map(([, id]) => id)).toEqual([linkId, linkId])
    // What it read is named by the files of its disk.
    const read = await site.eventually('list of files read', async () => {
      const found = await site.api.query<FilesRead | null>('boot.filesRead', { bootId: lastBoot?.id })
      return found ?? undefined
    })
    expect(read.namedBytes).toBeGreaterThanOrEqual(0.95 * read.bytes)
    // The machine's kernel tells which programs asked for it.
    expect(read.trace).toMatchObject({ state: 'complete', lost: 0 })
    expect(read.trace?.namedBytes).toBeGreaterThanOrEqual(0.95 * read.bytes)
    expect(read.trace?.unitBytes).toBeGreaterThanOrEqual(0.95 * read.bytes)
    expect(read.programs).toContainEqual(expect.objectContaining({ name: 'mount', unit: '(initramfs)' }))
    expect(read.files.map(({ name }) => name)).toEqual(expect.arrayContaining(['/bin/busybox', '/sbin/init']))
    await site.killEdge()
    await machine.waitFor(/the disk is lost for good; restart this machine \(bootfarm\.lost=wait\)/)
    const waiting = await deviceWhen(lost, 'device that waits', ({ waitsFor }) => waitsFor !== null)
    expect(waiting.waitsFor).toMatchObject({
      reason: 'lost_disk',
      sentence: expect.stringMatching(/has lost its writes\. It waits to be restarted\.$/),
    })
    const listed = () => site.api.query<{ items: Device[] }>('device.list', { waitsFor: 'lost_disk' })
    expect((await listed()).items.map(({ id }) => id)).toEqual([waiting.id])

    const { powerOrderId } = await site.api.mutate<{ powerOrderId: string }>('device.orderPower', {
      deviceId: waiting.id,
      order: 'restart',
    })
    expect(await machine.ended, 'an emulator that may not restart its machine ends').toBe(0)
    expect(machine.output).toMatch(/the edge orders this machine to restart/)
    expect(machine.output).toMatch(/reboot: Restarting system/)
    const ordered = await deviceWhen(lost, 'order that is taken', ({ powerOrder }) => powerOrder?.state === 'taken')
    expect(ordered).toMatchObject({ powerOrder: { id: powerOrderId }, waitsFor: null, lastBoot: { id: lastBoot?.id } })
    expect((await listed()).items).toEqual([])
    const again = await runs(lost)
    await deviceWhen(
      lost,
      'next boot',
      (device) => device.lastBoot?.id !== lastBoot?.id && device.now.state === 'running',
    )
    again.write('off\n')
    expect(await again.ended).toBe(0)
  })

  test('opens its private image with the key in its TPM, and with no other, which is an alarm', async () => {
    site.machines.hasTpm = true
    await keepWritesIn('private')
    for (const found of ['nothing', 'changed']) {
      const machine = await runs(known)
      expect(machine.output).toMatch(new RegExp(`^FOUND ${found}\r?$`, 'm'))
      machine.write('off\n')
      expect(await machine.ended).toBe(0)
    }
    const { key } = await deviceWhen(known, 'key', ({ keyLabel }) => keyLabel === 'key_known')
    expect(key.known).toMatch(/^[0-9a-f]{64}$/)

    site.machines.clearTpm(known)
    const other = await site.machines.powerOn('bios', known)
    await other.waitFor(/does not open the disk of boot \S+ to this machine's key/)
    expect(other.output).not.toMatch(/^FOUND/m)
    const alarm = await deviceWhen(known, 'alarm', ({ keyLabel }) => keyLabel === 'key_changed')
    expect(alarm.key.known).toBe(key.known)
    expect(alarm.claimedKey).toMatch(/^[0-9a-f]{64}$/)
    expect(alarm.claimedKey).not.toBe(key.known)
    const failed = await deviceWhen(known, 'failure', ({ lastBoot }) => lastBoot?.outcome === 'failed')
    const boot = await site.api.query<{ failedCause: string }>('boot.get', { bootId: failed.lastBoot?.id })
    expect(boot.failedCause).toBe('identity_refused')
    await other.stop()
  })
})
