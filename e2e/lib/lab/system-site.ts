import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { onTestFailed } from 'vitest'
import type { SystemRoot } from '../../../scripts/lib/machines/system-root.mjs'
import { type Firmware, startMachine } from '../device/machine.ts'
import { keepRun } from './machine-record.ts'
import { edgeProgram, scratchDirectory } from './programs.ts'
import type { RunningProcess } from './running-process.ts'
import { Segment } from './segment.ts'

const debianBootPrograms = '/usr/lib/ipxe'
/** The kernel's check of the timer fails where an emulated processor stands still for a moment. A login prompt would throw away
 * what others have just written to the console. */
const serialConsole = 'console=ttyS0 quiet panic=-1 no_timer_check systemd.getty_auto=no'
/** What a system of this kind needs to start comfortably; half of it may hold what it writes. */
const memoryMib = 512

/** Says on the console how the system is once all its jobs are done, and switches the machine off. */
const witness = `[Unit]
After=multi-user.target bootfarm-ready.service bootfarm-timings.service
[Service]
Type=exec
ExecStart=/bin/sh -c 'exec >/dev/console; echo; \\
 while systemctl --quiet is-active bootfarm-timings; do sleep 1; done; \\
 echo "STATE $(systemctl is-system-running --wait)"; \\
 echo "FAILED $(systemctl --failed --plain --no-legend | tr "\\n" " ")"; \\
 echo "ADDRESSES $(ip -4 -o addr show dev eth0 | wc -l)"; \\
 echo "TIMERS $(systemctl is-active apt-daily.timer fstrim.timer | tr "\\n" " ")"; \\
 echo "WRITTEN $(touch /root/written && echo yes)"; \\
 echo "WITNESSED"; \\
 systemctl --no-block poweroff'
`

/** A site whose machines boot a Debian with systemd from its own initramfs. */
export class SystemSite {
  readonly segment: Segment
  readonly #scratch = scratchDirectory()
  readonly #root: SystemRoot
  readonly #image: string
  readonly #rootOffset: number
  readonly #running: RunningProcess[] = []

  /** `rootOffset`: where on the image its root file system begins, bytes. */
  constructor(name: string, root: SystemRoot, machines: number, rootOffset = 0) {
    this.#root = root
    this.#rootOffset = rootOffset
    this.segment = new Segment(name, { machines })
    this.#image = this.#inScratch('disk.raw')
    execFileSync('cp', ['--sparse=always', '--reflink=auto', root.image, this.#image])
    this.#addToImage('etc/systemd/system/witness.service', witness)
    this.#debugfs('symlink /etc/systemd/system/multi-user.target.wants/witness.service ../witness.service')
    mkdirSync(this.#inScratch('boot-files'))
    for (const program of ['undionly.kpxe', 'snponly.efi', 'ipxe.efi'])
      copyFileSync(path.join(debianBootPrograms, program), this.#inScratch(`boot-files/${program}`))
    this.#running.push(this.segment.startDhcpServer())
  }

  async startEdge(commandLine = ''): Promise<RunningProcess> {
    const edge = this.segment.startOnEdge(edgeProgram, [
      'serve',
      '--json',
      '--listen',
      this.segment.edgeIp,
      '--dhcp',
      'proxy',
      '--vdisk',
      this.#image,
      '--kernel',
      this.#root.vmlinuz,
      '--initrd',
      this.#root.initrd,
      '--cmdline',
      `${serialConsole} ${commandLine}`.trim(),
      '--data',
      this.#inScratch('edge'),
      '--boot-files',
      this.#inScratch('boot-files'),
    ])
    this.#running.push(edge)
    await edge.waitFor(/^.+$/m)
    return edge
  }

  /** Switches on this many machines at once; their consoles and packets are kept if the test fails. */
  async powerOn(firmware: Firmware, count: number): Promise<RunningProcess[]> {
    const capture = this.#inScratch('network.pcap')
    const recorder = this.segment.startCapture(capture)
    this.#running.push(recorder)
    await recorder.waitFor(/listening on/)
    const machines = Array.from({ length: count }, (_, port) =>
      startMachine({ segment: this.segment, port, firmware, directory: this.#scratch.path, memoryMib }),
    )
    this.#running.push(...machines)
    onTestFailed(({ task }) => keepRun(task.name, this.#running, capture))
    return machines
  }

  async remove(): Promise<void> {
    for (const process of this.#running.reverse()) await process.stop()
    this.segment.remove()
    this.#scratch.remove()
  }

  #addToImage(file: string, content: string): void {
    const source = this.#inScratch('added')
    writeFileSync(source, content)
    this.#debugfs(`write ${source} /${file}`)
  }

  /** Changes the image without mounting it. */
  #debugfs(request: string): void {
    const fileSystem = `${this.#image}?offset=${this.#rootOffset}`
    execFileSync('debugfs', ['-w', '-R', request, fileSystem], { stdio: ['ignore', 'ignore', 'pipe'] })
  }

  #inScratch(name: string): string {
    return path.join(this.#scratch.path, name)
  }
}
