import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { bootReport } from '@bootfarm/proto/uplink'
import { afterAll, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { versionIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import { edgeAddress, edgePorts, makeBootFiles, patterned, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { arm64Kernel, ext4Begin, markedInitramfs, x86Kernel } from '../lib/images/loader-files.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const system = patterned(20_000)
const diskSize = 64 * 512

/** The versions' files, and how a BIOS device's boot from each ends. */
const versions = [
  {
    name: 'initramfs-for-another-kernel',
    kernel: x86Kernel('6.1.0-53-amd64', system),
    initrd: markedInitramfs('6.1.0-51-amd64', 'x86_64', system),
    outcome: {
      phase: 'loader',
      cause: 'kernel_mismatch',
      text: 'kernel 6.1.0-53-amd64, initramfs for 6.1.0-51-amd64',
    },
  },
  {
    name: 'initramfs-for-another-processor',
    kernel: x86Kernel('6.1.0-53-amd64', system),
    initrd: markedInitramfs('6.1.0-53-amd64', 'aarch64', system),
    outcome: {
      phase: 'loader',
      cause: 'kernel_mismatch',
      text: 'kernel for x86_64, initramfs for aarch64',
    },
  },
  {
    name: 'kernel-for-another-processor',
    kernel: arm64Kernel(system),
    initrd: markedInitramfs('6.1.0-53-arm64', 'aarch64', system),
    outcome: {
      phase: 'loader',
      cause: 'kernel_architecture_mismatch',
      text: 'kernel for aarch64, machine with x86 BIOS',
    },
  },
  {
    name: 'kernel-cut-short',
    kernel: x86Kernel('6.1.0-53-amd64', system).subarray(0, 9000),
    initrd: markedInitramfs('6.1.0-53-amd64', 'x86_64', system),
    outcome: {
      phase: 'loader',
      cause: 'version_missing',
      text: 'kernel-cut-short/kernel is a kernel that was cut short',
    },
  },
  {
    name: 'no-kernel',
    kernel: Buffer.from('<html>404</html>'),
    initrd: markedInitramfs('6.1.0-53-amd64', 'x86_64', system),
    outcome: {
      phase: 'loader',
      cause: 'version_missing',
      text: 'no-kernel/kernel is not a kernel',
    },
  },
  {
    name: 'disk-cut-short',
    diskSize: 512,
    kernel: x86Kernel('6.1.0-53-amd64', system),
    initrd: markedInitramfs('6.1.0-53-amd64', 'x86_64', system),
    outcome: {
      phase: 'loader',
      cause: 'version_missing',
      text: 'disk-cut-short/disk has 512 bytes instead of 32768',
    },
  },
  {
    name: 'disk-smaller-than-its-file-system',
    disk: ext4Begin(diskSize / 4096 + 1),
    kernel: x86Kernel('6.1.0-53-amd64', system),
    initrd: markedInitramfs('6.1.0-53-amd64', 'x86_64', system),
    outcome: {
      phase: 'loader',
      cause: 'disk_truncated',
      text: 'ext4 needs 36864 bytes, 32768 are there',
    },
  },
  {
    name: 'good',
    kernel: x86Kernel('6.1.0-53-amd64', system),
    initrd: markedInitramfs('6.1.0-53-amd64', 'x86_64', system),
    outcome: undefined,
  },
  {
    name: 'with-an-initramfs-of-somebody-else',
    kernel: x86Kernel('6.1.0-53-amd64', system),
    initrd: system,
    outcome: undefined,
  },
]

test('a version that cannot start is reported on the console and in the boot, any other boots', async () => {
  const ports = await edgePorts()
  const data = path.join(scratch.path, 'edge')
  const { bootFiles, vdisk } = makeBootFiles(scratch.path, diskSize / 512)
  const macs = versions.map((_, index) => `02:bf:00:00:00:${(index + 1).toString(16).padStart(2, '0')}`)
  for (const { name, kernel, initrd, ...version } of versions) {
    const folder = path.join(data, 'store', name)
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, 'kernel'), kernel)
    writeFileSync(path.join(folder, 'initrd'), initrd)
    const disk = path.join(folder, 'disk')
    writeFileSync(disk, version.disk ?? patterned(diskSize))
    truncateSync(disk, version.diskSize ?? diskSize)
  }
  writeEnrolledEdge(
    data,
    macs,
    versions.map(({ name }) => ({
      sizeBytes: diskSize,
      diskPath: `${name}/disk`,
      kernelPath: `${name}/kernel`,
      initrdPath: `${name}/initrd`,
      commandLine: 'quiet',
    })),
  )
  const edge = await startLoopbackEdge(ports, ['--data', data, '--boot-files', bootFiles, '--json'])
  const trace = path.join(scratch.path, 'trace.csv')
  writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n')
  const { devices } = await bootDevices([
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(ports.dhcp),
    '--tftp-port',
    String(ports.tftp),
    '--devices',
    String(versions.length),
    '--trace',
    trace,
    '--verify',
    vdisk,
    '--breather-ms',
    '1',
  ])
  const boots = (await printedBoots(edge, versions.length)).map((line) => bootReport.parse(line))
  expect(await edge.stop()).toBe(0)

  for (const [index, { name, outcome }] of versions.entries()) {
    const boot = boots.find(({ versionId }) => versionId === versionIdOf(index))
    const device = devices.find(({ mac }) => mac === macs[index])
    expect(boot?.outcome, name).toEqual(outcome ? { kind: 'failed', ...outcome } : { kind: 'ready' })
    expect(device?.outcome, name).toBe(outcome ? 'failed' : 'ready')
    if (outcome) expect(device?.text, name).toBe(`bootfarm: ${outcome.text}`.slice(0, 64))
  }
  expect(boots, 'one boot for each device').toHaveLength(versions.length)
})
