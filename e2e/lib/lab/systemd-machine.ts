import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { SystemRoot } from '../../../scripts/lib/machines/system-root.mjs'
import { changeFileSystem } from '../images/system-disk.ts'
import { scratchDirectory } from './programs.ts'
import { RunningProcess } from './running-process.ts'

/** How the machine reaches this host's loopback (QEMU's user network). */
export const hostAddress = '10.0.2.2'

/** Runs once the network is up, with the console as its output. */
const unit = `[Unit]
Wants=network-online.target
After=network-online.target multi-user.target
[Service]
Type=exec
ExecStart=/bin/sh -c 'exec >/dev/console 2>&1; echo; . /root/steps'
`

/** An emulated server with systemd: a Debian on its own disk, which runs \`steps\` at each start. */
export class SystemdMachine {
  readonly console: RunningProcess
  readonly #scratch = scratchDirectory()

  /** @param steps a shell script; it prints what it found on the console */
  constructor(root: SystemRoot, steps: string) {
    const image = path.join(this.#scratch.path, 'disk.raw')
    execFileSync('cp', ['--sparse=always', '--reflink=auto', root.image, image])
    const write = (name: string, content: string) => {
      const source = path.join(this.#scratch.path, 'added')
      writeFileSync(source, content)
      changeFileSystem(image, `rm /${name}`)
      changeFileSystem(image, `write ${source} /${name}`)
    }
    // Lists disks of the machine that the system was once installed on.
    write('etc/fstab', '')
    write('root/steps', steps)
    write('etc/systemd/system/steps.service', unit)
    changeFileSystem(image, 'symlink /etc/systemd/system/multi-user.target.wants/steps.service ../steps.service')
    this.console = new RunningProcess('qemu-system-x86_64', [
      '-accel',
      'tcg',
      '-cpu',
      'max',
      '-smp',
      '1',
      '-m',
      '768',
      '-machine',
      'pc,graphics=off',
      '-nodefaults',
      '-display',
      'none',
      '-monitor',
      'none',
      '-kernel',
      root.vmlinuz,
      '-initrd',
      root.initrd,
      '-append',
      'root=/dev/vda rw console=ttyS0 systemd.show_status=0 quiet',
      '-drive',
      `if=virtio,format=raw,file=${image}`,
      '-netdev',
      'user,id=n0',
      '-device',
      'virtio-net-pci,netdev=n0',
      '-object',
      'rng-random,id=r0,filename=/dev/urandom',
      '-device',
      'virtio-rng-pci,rng=r0',
      '-chardev',
      'stdio,id=c0,signal=off',
      '-serial',
      'chardev:c0',
    ])
  }

  async remove(): Promise<void> {
    await this.console.stop()
    this.#scratch.remove()
  }
}
