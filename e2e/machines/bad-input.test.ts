import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { macOf } from '../lib/device/machine.ts'
import { findMachineKernel, machinesMissing } from '../lib/device/machine-kernel.ts'
import { versionIdOf } from '../lib/edge/enrolled-edge.ts'
import { cutLogicalPartition, initramfsFor } from '../lib/images/bad-images.ts'
import { arm64Kernel, markedInitramfs } from '../lib/images/loader-files.ts'
import { dashboardUrl, finishedBoot, MachineSite, type SiteVersion } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** Runs on the only machine with a good disk: writes more than its write cache takes. */
const script = `
cat /blob >/copy
while sleep 1; do :; done
`
const useBootToken = path.resolve(import.meta.dirname, '../lib/device/use-boot-token.ts')
const mib = 1 << 20
const fileSystemSize = 24 * mib

const missing = machinesMissing()
const release = findMachineKernel()?.release ?? ''
const otherRelease = release.replace(/^\d/, '9')
let site: MachineSite
let edge: RunningProcess

interface BadInput {
  name: string
  /** The whole line on the machine's console; `*` stands for anything. */
  line: string
  /** Undefined where the machine cannot reach its edge, since it lacks the driver of its network card. */
  outcome?: { phase: string; cause: string; text: string }
  version(): SiteVersion
}

/** The machine of port i gets input i. */
const inputs: BadInput[] = [
  {
    name: 'a token that was used',
    version: () => ({}),
    line: 'bootfarm-target: the edge 10.78.0.1:6910 refused the token of boot *: it was used before, or has expired; restart the device',
    outcome: { phase: 'breather', cause: 'token_refused', text: 'the token was used before, or has expired' },
  },
  {
    name: 'an edge whose stream does not answer',
    version: () => ({}),
    line: 'bootfarm-target: the edge 10.78.0.1:6910 has not answered for 3 s; still trying',
    outcome: {
      phase: 'breather',
      cause: 'stream_unreachable',
      text: 'the stream at 10.78.0.1:6910 does not answer',
    },
  },
  {
    name: 'an initramfs for another kernel',
    version: () => ({
      initrd: site.file('other-initrd', markedInitramfs('6.1.0-1-amd64', 'x86_64', Buffer.alloc(4096))),
    }),
    line: `bootfarm: kernel ${release}, initramfs for 6.1.0-1-amd64`,
    outcome: {
      phase: 'loader',
      cause: 'kernel_mismatch',
      text: `kernel ${release}, initramfs for 6.1.0-1-amd64`,
    },
  },
  {
    name: 'an initramfs for another kernel that does not say so',
    version: () => ({
      initrd: site.file('foreign-initrd', initramfsFor(otherRelease, release, site.initrd)),
    }),
    line: `bootfarm: this initramfs was made for kernel ${otherRelease}, but ${release} runs; build one with --kernel-release ${release}`,
  },
  {
    name: 'a kernel for another processor',
    version: () => ({ kernel: site.file('arm64-kernel', arm64Kernel(Buffer.alloc(4096))) }),
    line: 'bootfarm: kernel for aarch64, machine with x86 BIOS',
    outcome: {
      phase: 'loader',
      cause: 'kernel_architecture_mismatch',
      text: 'kernel for aarch64, machine with x86 BIOS',
    },
  },
  {
    name: 'a kernel without nbd',
    version: () => ({ commandLine: 'module_blacklist=nbd' }),
    line: 'bootfarm: this kernel has no nbd driver (CONFIG_BLK_DEV_NBD), so no disk can be streamed',
    outcome: {
      phase: 'breather',
      cause: 'kernel_without_nbd',
      text: 'this kernel has no nbd driver (CONFIG_BLK_DEV_NBD), so no disk c',
    },
  },
  {
    name: 'a disk that is smaller than its file system',
    version: () => ({ disk: site.file('cut', readFileSync(site.disk.image).subarray(0, mib)) }),
    line: `bootfarm: ext4 needs ${fileSystemSize} bytes, ${mib} are there`,
    outcome: {
      phase: 'loader',
      cause: 'disk_truncated',
      text: `ext4 needs ${fileSystemSize} bytes, ${mib} are there`,
    },
  },
  {
    name: 'a disk that is cut where the edge does not look',
    version: () => ({
      disk: site.file('cut-logical', cutLogicalPartition(readFileSync(site.disk.image), mib)),
    }),
    line: `bootfarm: ext4 on nbd0p5 needs ${fileSystemSize} bytes, ${mib} are there`,
    outcome: {
      phase: 'stage2',
      cause: 'disk_truncated',
      text: `ext4 on nbd0p5 needs ${fileSystemSize} bytes, ${mib} are there`,
    },
  },
  {
    name: 'a disk without a file system',
    version: () => ({ disk: site.file('no-file-system', Buffer.alloc(mib, 'x')) }),
    line: 'bootfarm: no file system on /dev/nbd0 could be mounted',
    outcome: {
      phase: 'stage2',
      cause: 'root_not_found',
      text: 'no file system on /dev/nbd0 could be mounted',
    },
  },
  {
    name: 'less RAM for its writes than it needs',
    version: () => ({ commandLine: 'bootfarm.overlay=4m' }),
    line: 'bootfarm-target: write cache in RAM is full (4 MiB): writes fail; enlarge it with bootfarm.overlay=, or write less',
    outcome: { phase: 'stage2', cause: 'write_cache_full', text: 'write cache in RAM is full (4 MiB)' },
  },
]
const [usedToken, closedStream] = [0, 1]
const started = inputs.map(() => Promise.withResolvers<RunningProcess>())
/** On two cores, emulated. */
const machinesAtOnce = 3

describe.skipIf(missing)(`a machine that is given${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    site = new MachineSite('badinput', { script, blobSize: 8 * mib }, { machines: inputs.length })
    edge = await site.startEnrolledEdge(inputs.map(({ version }) => version()))
    site.segment.addSwitchAddress()
    site.segment.closeStream(macOf(closedStream))
    const ports = inputs.keys()
    for (let lane = 0; lane < machinesAtOnce; lane++) void runEach(ports)
  })

  afterAll(async () => {
    await site.remove()
  })

  test.for(inputs.map((input, port) => ({ ...input, port })))('$name says so in one line', async (input) => {
    const machine = await started[input.port]?.promise
    if (!machine) throw new Error(`no machine at port ${input.port}`)
    site.keepIfFailed(machine)
    await machine.waitFor(lineOf(input))
    const { outcome } = input
    if (!outcome) return
    const boot = await finishedBoot(edge, ({ versionId }) => versionId === versionIdOf(input.port))
    expect(boot.outcome).toEqual({ kind: 'failed', ...outcome })
    // Its screen says where to read more.
    const linkId = boot.id.replaceAll('-', '').slice(0, 12)
    await machine.waitFor(new RegExp(`bootfarm: this boot: ${escaped(dashboardUrl)}/b/${linkId}\\b`))
  })
})

/** Starts one machine after the other, each once the previous one has printed its line. */
async function runEach(ports: Iterator<number>): Promise<void> {
  for (let next = ports.next(); !next.done; next = ports.next()) {
    const input = inputs[next.value]
    const place = started[next.value]
    if (!input || !place) return
    const listener = next.value === usedToken ? await listen(next.value) : undefined
    const machine = site.startMachine('bios', next.value)
    machine.then(place.resolve, place.reject)
    if (listener) await useTokenHeardBy(listener).catch(place.reject)
    await Promise.race([(await machine).waitFor(lineOf(input)), (await machine).ended]).catch(() => undefined)
  }
}

/** The first line of a kernel's console follows a clear-screen sequence. */
const lineOf = ({ line }: BadInput) => new RegExp(`(?:^|\\[2J)${escaped(line)}\\r?$`, 'm')

/** Starts to overhear what the edge sends to this machine by HTTP. */
async function listen(port: number): Promise<RunningProcess> {
  const packets = ['-A', '-l', '-s', '0', '-Z', 'root', '-i', `tap${port}`, 'tcp src port 6980']
  const listener = site.segment.startOnSwitch('tcpdump', packets)
  await listener.waitFor(/listening on/)
  return listener
}

/** Somebody else on the network overhears the machine's boot script, and is faster. */
async function useTokenHeardBy(listener: RunningProcess): Promise<void> {
  const overheard = async (name: string) =>
    (await listener.waitFor(new RegExp(`set bootfarm_${name} (\\S+)\\s`)))[1] ?? ''
  const heard = [await overheard('edge'), await overheard('boot'), await overheard('token')]
  await listener.stop()
  const stranger = site.segment.startOnSwitch(process.execPath, [useBootToken, ...heard])
  expect(await stranger.ended, stranger.output).toBe(0)
  expect(stranger.output).toBe('used\n')
}

function escaped(text: string): string {
  return text.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')
}
