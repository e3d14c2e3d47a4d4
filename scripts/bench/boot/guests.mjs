import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { edgeProgram } from '../../lib/paths.mjs'

/** A machine prints this on its console when it is up; the clock stops there. */
export const readyLine = 'MACHINE READY'

const busybox = '/bin/busybox'
const applets = ['sh', 'echo', 'ip', 'ls', 'mkdir', 'modprobe', 'mount', 'poweroff', 'sleep', 'switch_root', 'udhcpc']

/** A machine with our client reports before it prints; without one the second line does nothing. */
const busyboxInit = `#!/bin/sh
export PATH=/bin
[ -x /run/bootfarm/bootfarm-target ] && /run/bootfarm/bootfarm-target ready busybox
echo "${readyLine}" >/dev/console
while sleep 60; do :; done
`
const readyUnit = `[Unit]
After=multi-user.target bootfarm-ready.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo; echo "${readyLine}" >/dev/console'
`

/** Makes a root with busybox alone, as a raw disk image. */
export function makeBusyboxDisk(directory) {
  const root = path.join(directory, 'busybox-root')
  makeTree(root, ['bin', 'sbin', 'proc', 'sys', 'dev', 'run'])
  addBusybox(root)
  addScript(path.join(root, 'sbin/init'), busyboxInit)
  const image = path.join(directory, 'busybox.raw')
  execFileSync('mke2fs', ['-q', '-t', 'ext4', '-b', '4096', '-d', root, image, '32M'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return image
}

/**
 * Makes the Debian disk with a unit that prints the line when everything is up, and without what names another
 * machine's disk and cards, so that no contender has to adapt anything.
 * @param {import('../../lib/machines/system-root.mjs').SystemRoot} root
 */
export function makeSystemDisk(directory, root) {
  const image = path.join(directory, 'system.raw')
  execFileSync('cp', ['--sparse=always', '--reflink=auto', root.image, image])
  const unit = path.join(directory, 'unit')
  writeFileSync(unit, readyUnit)
  const wants = '/etc/systemd/system/multi-user.target.wants'
  for (const request of [
    'rm /etc/fstab',
    'rm /etc/network/interfaces',
    'rm /etc/systemd/network/80-dhcp.network',
    `write ${unit} /etc/systemd/system/machine-ready.service`,
    `symlink ${wants}/machine-ready.service ../machine-ready.service`,
  ])
    execFileSync('debugfs', ['-w', '-R', request, image], { stdio: ['ignore', 'ignore', 'pipe'] })
  return image
}

/** Makes our initramfs, as a user does. */
export function makeInitramfs(directory, kernel) {
  const out = path.join(directory, 'initrd.img')
  const args = ['initramfs', 'build', '--kernel-release', kernel.release, '--modules', kernel.modules, '--out', out]
  execFileSync(edgeProgram, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  return out
}

/** Exactly the drivers that this virtual machine needs: nothing is probed. */
const referenceModules = ['virtio_pci', 'virtio_net', 'nbd', 'overlay', 'af_packet']
const referenceInit = (serverIp) => `#!/bin/sh
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
modprobe -a ${referenceModules.join(' ')} 2>/dev/null
ip link set lo up
ip link set eth0 up
udhcpc -i eth0 -n -q -f -t 10 -T 1 -s /bin/udhcpc.sh >/dev/null 2>&1
nbd-client -b 4096 -R ${serverIp} /dev/nbd0 >/dev/null 2>&1 || poweroff -f
mkdir -p /lower /overlay /newroot
mount -t ext4 -o ro,noload /dev/nbd0 /lower
mount -t tmpfs -o size=50% tmpfs /overlay
mkdir /overlay/upper /overlay/work
mount -t overlay -o lowerdir=/lower,upperdir=/overlay/upper,workdir=/overlay/work overlay /newroot
for tree in dev proc sys; do mount --move /$tree /newroot/$tree; done
exec switch_root /newroot /sbin/init
`
const referenceUdhcpc = '#!/bin/sh\n[ "$1" = bound ] && ip addr replace "$ip/$mask" dev "$interface"\nexit 0\n'

/**
 * Makes the smallest initramfs that gets the same root with nbd-client, as one would write it by hand for this machine.
 */
export function makeReferenceInitramfs(directory, kernel, serverIp) {
  const root = path.join(directory, 'reference')
  makeTree(root, ['bin', 'sbin', 'proc', 'sys', 'dev', 'lib/modules'])
  addBusybox(root)
  const client = ['/usr/sbin/nbd-client', '/sbin/nbd-client'].find((file) => existsSync(file))
  copyFileSync(client, path.join(root, 'bin/nbd-client'))
  const libraries = execFileSync('ldd', [client], { encoding: 'utf8' }).match(/\/[^ ]+/g) ?? []
  for (const library of libraries) copyInto(root, library)
  copyModules(root, kernel)
  addScript(path.join(root, 'init'), referenceInit(serverIp))
  addScript(path.join(root, 'bin/udhcpc.sh'), referenceUdhcpc)
  const out = path.join(directory, 'reference.img')
  execFileSync('sh', ['-c', `cd ${root} && find . | ${busybox} cpio -o -H newc 2>/dev/null | gzip -6 >${out}`])
  return out
}

function copyModules(root, { release, modules }) {
  const options = ['-d', modules, '-S', release, '-a', '--show-depends']
  const listed = execFileSync('modprobe', [...options, ...referenceModules], { encoding: 'utf8' })
  const folder = path.join(root, 'lib/modules', release)
  for (const [, file] of listed.matchAll(/^insmod (\S+)/gm)) {
    const place = path.join(folder, path.relative(path.join(modules, 'lib/modules', release), file))
    mkdirSync(path.dirname(place), { recursive: true })
    copyFileSync(file, place)
  }
  execFileSync('depmod', ['-b', root, release], { stdio: ['ignore', 'ignore', 'pipe'] })
}

function copyInto(root, file) {
  const place = path.join(root, file)
  mkdirSync(path.dirname(place), { recursive: true })
  copyFileSync(file, place)
}

function makeTree(root, folders) {
  rmSync(root, { recursive: true, force: true })
  for (const folder of folders) mkdirSync(path.join(root, folder), { recursive: true })
}

function addBusybox(root) {
  copyFileSync(busybox, path.join(root, 'bin/busybox'))
  for (const applet of applets) symlinkSync('busybox', path.join(root, 'bin', applet))
}

function addScript(file, text) {
  writeFileSync(file, text)
  chmodSync(file, 0o755)
}
