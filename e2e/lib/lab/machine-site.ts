import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { BootReport } from '@bootfarm/proto/uplink'
import { onTestFailed } from 'vitest'
import type { SystemRoot } from '../../../scripts/lib/machines/system-root.mjs'
import { type Firmware, type Medium, macOf, startMachine } from '../device/machine.ts'
import { buildInitramfs } from '../device/machine-kernel.ts'
import { type MachinePlatform, publish, x64Platform } from '../device/machine-platform.ts'
import { summary } from '../device/simulated-devices.ts'
import { type TestMenu, type TestPowerOrder, writeEnrolledEdge } from '../edge/enrolled-edge.ts'
import { type MachineDisk, makeMachineDisk } from '../images/machine-disk.ts'
import { makeSystemDisk } from '../images/system-disk.ts'
import { makeWholeDisk } from '../images/whole-disk.ts'
import { keepRun, recordBoot } from './machine-record.ts'
import { readPackets, type SeenPacket } from './packets.ts'
import { edgeProgram, scratchDirectory } from './programs.ts'
import type { RunningProcess } from './running-process.ts'
import { Segment } from './segment.ts'

/** An emulated machine that has to wait for a core seems to have a broken timer, and its kernel would give up. */
const steadyKernel = 'quiet panic=-1 no_timer_check'
/** A login prompt would throw away what others have just written to the console. */
const systemWords = 'systemd.getty_auto=no'
/** What a system of this kind needs to start comfortably; half of it may hold what it writes. */
const systemMemoryMib = 512

/** What a machine is to boot; what is not given is the site's own. */
export interface SiteVersion {
  disk?: string
  kernel?: string
  initrd?: string
  /** Goes before what the machines' console needs. */
  commandLine?: string
  /** Which boot programs the machine is given. */
  bootProgramSet?: string
}

/** Where the edge is the network's DHCP server, it has the addresses that the plain one would have. */
export type EdgeDhcp = 'proxy' | 'server' | 'off'

export interface MachineSiteOptions {
  /** How many ports the switch has for machines. */
  machines?: number
  edges?: number
  platform?: MachinePlatform | undefined
  /** Without it the edge alone answers DHCP. */
  dhcpServer?: boolean
}

/**
 * What the machines' disk holds. `script` is what a small system's init does, with `blobSize` bytes to read (`makeMachineDisk`);
 * `system` is a Debian with systemd and its own initramfs, whose root begins at `rootOffset` bytes of the disk.
 */
export type SiteImage = { script: string; blobSize: number } | { system: SystemRoot; rootOffset?: number }

/** A site with its own DHCP server and an edge beside it, made for one test file. */
export class MachineSite {
  readonly segment: Segment
  readonly disk: MachineDisk
  /** Images of disks in each machine that is switched on from now on, which it may write. */
  ownDisks: readonly string[] = []
  /** Bytes of the largest IP packet that the cards of machines take that are switched on from now on; without it, Ethernet's. */
  mtu: number | undefined
  readonly #scratch = scratchDirectory()
  readonly kernel: string
  readonly initrd: string
  /** What a version of the machines' disk has for a command line: the kernel needs it to speak to the test. */
  readonly commandLine: string
  readonly #memoryMib: number | undefined
  readonly #recordedPort: string
  readonly #running: RunningProcess[] = []
  #recorder: RunningProcess | undefined

  constructor(
    name: string,
    image: SiteImage,
    { machines = 1, edges = 1, platform = x64Platform(), dhcpServer = true }: MachineSiteOptions = {},
  ) {
    if (!platform) throw new Error('no kernel for virtual machines')
    this.segment = new Segment(name, { machines, edges })
    // Of several edges, what the first machine has to do with each.
    this.#recordedPort = edges > 1 ? 'tap0' : 'to-edge'
    const console = `console=${platform.serial} ${steadyKernel}`
    if ('system' in image) {
      const { system, rootOffset } = image
      this.disk = { image: makeSystemDisk(this.#scratch.path, system, rootOffset), blobSum: '' }
      this.kernel = system.vmlinuz
      this.initrd = system.initrd
      this.commandLine = `${console} ${systemWords}`
      this.#memoryMib = systemMemoryMib
    } else {
      this.disk = makeMachineDisk(this.#scratch.path, image.script, image.blobSize, platform.busybox)
      this.kernel = platform.kernel.vmlinuz
      this.initrd = this.#inScratch('initrd.img')
      this.commandLine = console
      buildInitramfs(platform, this.initrd)
    }
    publish(platform.bootPrograms, this.#inScratch('boot-files'))
    platform.makeSets?.(this.#inScratch('boot-files'))
    if (dhcpServer) this.startDhcpServer()
  }

  /** The network's own DHCP server, where the site was made without one. `more`: what else dnsmasq does. */
  startDhcpServer(more: string[] = []): void {
    this.#running.push(this.segment.startDhcpServer(more))
  }

  /** A file of this site alone. */
  file(name: string, content: Uint8Array): string {
    const file = this.#inScratch(name)
    writeFileSync(file, content)
    return file
  }

  /** Starts an edge on the real ports, and waits until it says that it serves. Started again, it goes on with its data.
   * `kernelWords` are for the kernel's command line, `more` for the edge. */
  startEdge(dhcp: EdgeDhcp = 'proxy', kernelWords = '', more: readonly string[] = []): Promise<RunningProcess> {
    return this.#serve(dhcp, [
      ...more,
      '--vdisk',
      this.disk.image,
      '--kernel',
      this.kernel,
      '--initrd',
      this.initrd,
      '--cmdline',
      `${this.commandLine} ${kernelWords}`.trim(),
    ])
  }

  /** A disk that boots by itself; `script` is of its first process. */
  wholeDisk(script: string): string {
    return makeWholeDisk({
      directory: this.#scratch.path,
      vmlinuz: this.kernel,
      initrd: this.initrd,
      commandLine: this.commandLine,
      script,
    })
  }

  /** Makes such a disk, and starts an edge that serves it without a kernel. */
  startWholeDiskEdge(script: string): Promise<RunningProcess> {
    return this.#serve('proxy', ['--vdisk', this.wholeDisk(script)])
  }

  /** Starts an edge that has enrolled before and has no control plane now: the machine of port i boots `versions[i]`.
   * Started again, it goes on with its data and has new power orders. Every machine shows the menu. */
  startEnrolledEdge(
    versions: SiteVersion[],
    powerOrders: TestPowerOrder[] = [],
    menu?: TestMenu,
  ): Promise<RunningProcess> {
    const data = this.#inScratch('edge')
    const described = versions.map((version, index) => {
      const folder = path.join(data, 'store', String(index))
      mkdirSync(folder, { recursive: true })
      const disk = version.disk ?? this.disk.image
      copyFileSync(disk, path.join(folder, 'disk'))
      copyFileSync(version.kernel ?? this.kernel, path.join(folder, 'kernel'))
      copyFileSync(version.initrd ?? this.initrd, path.join(folder, 'initrd'))
      return {
        sizeBytes: statSync(disk).size,
        diskPath: `${index}/disk`,
        kernelPath: `${index}/kernel`,
        initrdPath: `${index}/initrd`,
        commandLine: [version.commandLine, this.commandLine].join(' ').trim(),
        bootProgramSet: version.bootProgramSet,
      }
    })
    writeEnrolledEdge(
      data,
      versions.map((_, index) => macOf(index)),
      described,
      powerOrders,
      menu,
    )
    return this.#serve('proxy', [])
  }

  /** Where `startOwnEdge` has its data. */
  get edgeData(): string {
    return this.#inScratch('edge')
  }

  /** Starts an edge that was enrolled into `edgeData`, and serves what its control plane or its own data say. */
  startOwnEdge(): Promise<RunningProcess> {
    return this.#serve('proxy', [])
  }

  /** Starts one of several edges, which was enrolled into `data`. Started again, it goes on with its data. */
  startEdgeOfSite(index: number, data: string): Promise<RunningProcess> {
    return this.#serve('proxy', [], { index, data })
  }

  async #serve(
    dhcp: EdgeDhcp,
    what: string[],
    { index, data } = { index: 0, data: this.edgeData },
  ): Promise<RunningProcess> {
    const options = [
      'serve',
      '--json',
      '--listen',
      this.segment.edgeIpOf(index),
      '--dhcp',
      dhcp,
      ...what,
      ...(dhcp === 'server' ? ['--dhcp-pool', this.segment.pool] : []),
      '--data',
      data,
      '--boot-files',
      this.#inScratch('boot-files'),
    ]
    const edge = this.segment.startOnEdge(edgeProgram, options, index)
    this.#running.push(edge)
    await edge.waitFor(/^.+$/m)
    return edge
  }

  /** Switches a machine on; what it and the network did is kept if the test fails. */
  async powerOn(firmware: Firmware, port = 0, medium?: Medium): Promise<RunningProcess> {
    await this.#recorder?.stop()
    const machine = await this.startMachine(firmware, port, medium)
    this.keepIfFailed(machine)
    return machine
  }

  /** Switches on this many machines at once; what they and the network did is kept if the test fails. */
  async powerOnAll(firmware: Firmware, count: number): Promise<RunningProcess[]> {
    await this.#recorder?.stop()
    const machines: RunningProcess[] = []
    for (let port = 0; port < count; port++) machines.push(await this.startMachine(firmware, port))
    this.keepIfFailed(...machines)
    return machines
  }

  /** Switches a machine on, outside of a test too. The network is recorded from the first of them on. */
  async startMachine(firmware: Firmware, port = 0, medium?: Medium): Promise<RunningProcess> {
    if (!this.#recorder?.isRunning) {
      this.#recorder = this.segment.startCapture(this.#inScratch('network.pcap'), this.#recordedPort)
      this.#running.push(this.#recorder)
    }
    await this.#recorder.waitFor(/listening on/)
    const directory = this.#scratch.path
    const machine = startMachine({
      segment: this.segment,
      port,
      firmware,
      medium,
      directory,
      ownDisks: this.ownDisks,
      mtu: this.mtu,
      memoryMib: this.#memoryMib,
    })
    this.#running.push(machine)
    return machine
  }

  /** Within a test: what these machines and the network did is kept if the test fails. */
  keepIfFailed(...machines: RunningProcess[]): void {
    const capture = this.#inScratch('network.pcap')
    onTestFailed(({ task }) => keepRun(task.name, [...this.#running, ...machines], capture))
  }

  /** What passed the switch since the last machine was switched on; ends the recording. */
  async packets(): Promise<SeenPacket[]> {
    await this.#recorder?.stop()
    return readPackets(this.#inScratch('network.pcap'))
  }

  /** Ends everything that was started, in the reverse order. */
  async remove(): Promise<void> {
    for (const process of this.#running.reverse()) await process.stop()
    this.segment.remove()
    this.#scratch.remove()
  }

  #inScratch(name: string): string {
    return path.join(this.#scratch.path, name)
  }
}

/** The edge's line about a boot that is over; the first one that fits. `what` it is, is for messages. */
export async function finishedBoot(
  edge: RunningProcess,
  fits: (report: BootReport) => boolean = () => true,
  what = 'boot that is over',
): Promise<BootReport> {
  const printed = () => edge.jsonLines<BootReport>()
  const report = await edge.waitUntil(
    () => `${what}, but\n${printed().map(summary).join('\n')}`,
    () => printed().find((boot) => boot.outcome !== undefined && fits(boot)),
  )
  recordBoot(report)
  return report
}
