import { copyFileSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { BootReport, DesiredState } from '@bootfarm/proto/uplink'
import { onTestFailed } from 'vitest'
import type { SystemRoot } from '../../../scripts/lib/machines/system-root.mjs'
import { type Firmware, type MachineLink, type Medium, macOf, startMachine } from '../device/machine.ts'
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
import { RunningProcess } from './running-process.ts'
import { Segment } from './segment.ts'

/** Enrolled edges have their machines print links to it. */
export const dashboardUrl = 'https://boot.example.org'

/** When an emulated machine waits for a core, its kernel would take the timer for broken and give up. */
const steadyKernel = 'quiet panic=-1 no_timer_check'
/** A login prompt would overwrite what others have just written to the console. */
const systemWords = 'systemd.getty_auto=no'
/** Enough for a full system to start; half of it may hold what it writes. */
const systemMemoryMib = 512

/** What a machine boots; the site's own files are the defaults. */
export interface SiteVersion {
  disk?: string
  kernel?: string
  initrd?: string
  /** Precedes what the machines' console needs. */
  commandLine?: string
  /** The set of boot programs that the machine gets. */
  bootProgramSet?: string
  writeCache?: DesiredState['vdisks'][number]['writeCache']
}

/** Where the edge is the network's DHCP server, it hands out the addresses of the plain one. */
export type EdgeDhcp = 'proxy' | 'server' | 'off'

export interface MachineSiteOptions {
  /** How many ports the switch has for machines. */
  machines?: number
  edges?: number
  platform?: MachinePlatform | undefined
  /** Without it only the edge answers DHCP. */
  dhcpServer?: boolean
}

/**
 * What the machines' disk holds. `script` runs as the init of a small system, with `blobSize` bytes to read
 * (`makeMachineDisk`); `system` is a Debian with systemd and its own initramfs, whose root begins at `rootOffset` bytes
 * of the disk.
 */
export type SiteImage = { script: string; blobSize: number } | { system: SystemRoot; rootOffset?: number }

/** A site with its own DHCP server and an edge beside it, made for one test file. */
export class MachineSite {
  readonly segment: Segment
  readonly disk: MachineDisk
  /** Images of disks in each machine that is switched on from now on; machines may write them. */
  ownDisks: readonly string[] = []
  /**
   * Bytes of the largest IP packet that the cards of machines take that are switched on from now on; by default
   * Ethernet's.
   */
  mtu: number | undefined
  /** What the cards of machines say of their link that are switched on from now on; by default nothing. */
  link: MachineLink | undefined
  /** Machines that are switched on from now on have a TPM 2.0, each its own until `clearTpm`. */
  hasTpm = false
  readonly #scratch = scratchDirectory()
  readonly kernel: string
  readonly initrd: string
  /** The command line of a version of the machines' disk: the kernel needs it to reach the test's console. */
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
    // With several edges, the first machine's traffic with each of them is recorded.
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

  /** Starts the network's own DHCP server, where the site was made without one. `more`: further options of dnsmasq. */
  startDhcpServer(more: string[] = []): void {
    this.#running.push(this.segment.startDhcpServer(more))
  }

  /** Makes a file for this site alone. */
  file(name: string, content: Uint8Array): string {
    const file = this.#inScratch(name)
    writeFileSync(file, content)
    return file
  }

  /**
   * Starts an edge on the real ports, and waits until it reports that it serves. After a restart it keeps its data.
   * `kernelWords` are for the kernel's command line, `more` for the edge.
   */
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

  /** Makes a disk that boots by itself; its first process runs `script`. */
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

  /**
   * Starts an edge that has enrolled before and has no control plane now: the machine of port i boots `versions[i]`.
   * After a restart it keeps its data and has new power orders. Every machine shows the menu.
   */
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
        writeCache: version.writeCache,
      }
    })
    writeEnrolledEdge(
      data,
      versions.map((_, index) => macOf(index)),
      described,
      powerOrders,
      menu,
      { dashboardUrl },
    )
    return this.#serve('proxy', [])
  }

  /** Starts an edge that serves a version of a store, with what that boots. `more`: further options of `serve`. */
  startStoreEdge(store: string, version: string, more: readonly string[] = []): Promise<RunningProcess> {
    return this.#serve('proxy', [...more, '--store', store, '--version', version])
  }

  /** The data directory that `startOwnEdge` uses. */
  get edgeData(): string {
    return this.#inScratch('edge')
  }

  /**
   * Starts an edge that was enrolled into `edgeData`, and serves according to its control plane or its own data.
   * `more`: further options of `serve`.
   */
  startOwnEdge(more: readonly string[] = []): Promise<RunningProcess> {
    return this.#serve('proxy', [...more])
  }

  /** Starts one of several edges, which was enrolled into `data`. After a restart it keeps its data. */
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

  /** Switches a machine on; its console and the network's packets are kept if the test fails. */
  async powerOn(firmware: Firmware, port = 0, medium?: Medium): Promise<RunningProcess> {
    await this.#recorder?.stop()
    const machine = await this.startMachine(firmware, port, medium)
    this.keepIfFailed(machine)
    return machine
  }

  /** Switches on this many machines at once; their consoles and the network's packets are kept if the test fails. */
  async powerOnAll(firmware: Firmware, count: number): Promise<RunningProcess[]> {
    await this.#recorder?.stop()
    const machines: RunningProcess[] = []
    for (let port = 0; port < count; port++) machines.push(await this.startMachine(firmware, port))
    this.keepIfFailed(...machines)
    return machines
  }

  /** Switches a machine on, also outside a test. Recording of the network starts with the first machine. */
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
      link: this.link,
      tpm: this.hasTpm ? await this.#startTpm(port) : undefined,
      memoryMib: this.#memoryMib,
    })
    this.#running.push(machine)
    return machine
  }

  /** Gives a machine that is off a TPM with another seed, as clearing it in the firmware's setup does. */
  clearTpm(port = 0): void {
    rmSync(this.#inScratch(`tpm-${port}`), { recursive: true })
  }

  /** Resolves with the TPM's socket; the TPM ends with its machine, and keeps its state. */
  async #startTpm(port: number): Promise<string> {
    const state = this.#inScratch(`tpm-${port}`)
    const socket = `${state}.socket`
    mkdirSync(state, { recursive: true })
    rmSync(socket, { force: true })
    const options = ['--tpm2', '--terminate', '--tpmstate', `dir=${state}`, '--ctrl', `type=unixio,path=${socket}`]
    const tpm = new RunningProcess('swtpm', ['socket', ...options])
    this.#running.push(tpm)
    while (!existsSync(socket)) {
      if (!tpm.isRunning) throw new Error(`swtpm ended: ${tpm.output}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return socket
  }

  /** Within a test: keeps these machines' consoles and the network's packets if the test fails. */
  keepIfFailed(...machines: RunningProcess[]): void {
    const capture = this.#inScratch('network.pcap')
    onTestFailed(({ task }) => keepRun(task.name, [...this.#running, ...machines], capture))
  }

  /** Returns the packets that passed the switch since the last machine was switched on; ends the recording. */
  async packets(): Promise<SeenPacket[]> {
    await this.#recorder?.stop()
    return readPackets(this.#inScratch('network.pcap'))
  }

  /** Ends everything that was started, in reverse order. */
  async remove(): Promise<void> {
    for (const process of this.#running.reverse()) await process.stop()
    this.segment.remove()
    this.#scratch.remove()
  }

  #inScratch(name: string): string {
    return path.join(this.#scratch.path, name)
  }
}

/** Waits for the edge's line about the first finished boot that fits. `what` names it in messages. */
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
