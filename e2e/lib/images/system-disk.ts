import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { SystemRoot } from '../../../scripts/lib/machines/system-root.mjs'

/** Prints the state of the system on the console once all its jobs are done, and switches the machine off. */
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
 echo "SLEEP $(systemctl suspend >/dev/null 2>&1 && echo slept || echo refused)"; \\
 echo "WITNESSED"; \\
 systemctl --no-block poweroff'
`

/** Copies the disk of a Debian and adds the witness unit. `rootOffset`: where its root file system begins, in bytes. */
export function makeSystemDisk(directory: string, root: SystemRoot, rootOffset = 0): string {
  const image = path.join(directory, 'disk.raw')
  execFileSync('cp', ['--sparse=always', '--reflink=auto', root.image, image])
  const source = path.join(directory, 'added')
  writeFileSync(source, witness)
  const debugfs = (request: string) => changeFileSystem(`${image}?offset=${rootOffset}`, request)
  debugfs(`write ${source} /etc/systemd/system/witness.service`)
  debugfs('symlink /etc/systemd/system/multi-user.target.wants/witness.service ../witness.service')
  return image
}

/** Changes an ext4 file system without mounting it; `request` is one of debugfs(8). */
export function changeFileSystem(image: string, request: string): void {
  execFileSync('debugfs', ['-w', '-R', request, image], { stdio: ['ignore', 'ignore', 'pipe'] })
}
