import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { edgeSource, toolchain } from '../paths.mjs'
import { step } from '../progress.mjs'
import { must } from '../run.mjs'
import { ensureKernel, findKernel } from './kernel.mjs'

const suite = 'bookworm'
const mirror = 'http://deb.debian.org/debian'
/** In addition to Debian's essential packages: what makes it a server, and what `bootfarm-target prepare` requires. */
const packages = [
  'systemd-sysv',
  'dbus',
  'udev',
  'kmod',
  'iproute2',
  'ifupdown',
  'procps',
  'initramfs-tools',
  'busybox-static',
  'zstd',
  'linux-base',
  // Required to install an edge.
  'curl',
  'openssl',
]
const unneeded = ['var/cache/apt', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/man', 'usr/share/locale']
/** By kernel: the one with all drivers has four times as many modules. */
const diskSizes = { virtual: '768M', full: '1536M' }
/** Systems with other programs or packages are kept for a while: another working copy may share the directory. */
const kept = 6

const roots = path.join(toolchain, 'roots')
const targetProgram = path.join(edgeSource, 'zig-out/bin/bootfarm-target')

/**
 * The content of /etc on a Debian that was installed on a disk, which a machine without one must cope with: missing
 * partitions, two network managers that want the card, timers.
 */
const configuration = {
  'etc/hostname': 'debian\n',
  'etc/fstab': [
    'UUID=6f1e8ab6-0f4c-4c53-9d4c-0d7f1f0f6f11 / ext4 errors=remount-ro 0 1',
    'UUID=1C3A-77F0 /boot/efi vfat umask=0077 0 1',
    'UUID=0b1d0c52-6e1f-4d7e-8f43-3a1c3c6b5a90 none swap sw 0 0\n',
  ].join('\n'),
  'etc/network/interfaces': 'auto lo\niface lo inet loopback\n\nauto eth0\niface eth0 inet dhcp\n',
  'etc/systemd/network/80-dhcp.network': '[Match]\nName=e*\n\n[Network]\nDHCP=yes\n',
}

/**
 * @typedef {object} SystemRoot
 * @property {string} image raw disk image: one ext4 file system with Debian, prepared by `bootfarm-target prepare`
 * @property {string} vmlinuz its kernel
 * @property {string} initrd the initramfs that its own update-initramfs made
 * @property {string} release the kernel's release
 * @property {string} tree the same system before it was prepared, as a directory; never write into it
 */

/**
 * Builds a small Debian with systemd that boots from an edge, once, into .toolchain/roots; it is kept as long as its
 * ingredients stay the same. Anybody may sign in as root at its console, without a password. The edge must be built
 * first.
 * @param {'virtual' | 'full'} kind its kernel: for virtual machines, or with the drivers of real network cards
 * @returns {Promise<SystemRoot | { missing: string }>} `missing`: why it cannot be built here
 */
export async function ensureSystemRoot(kind = 'virtual') {
  const unprepared = await ensureSystemTree(kind)
  if ('missing' in unprepared) return unprepared
  const { tree, release } = unprepared
  const diskSize = diskSizes[kind]
  const key = keyOf(path.basename(tree), buildSystem.toString(), diskSize, readFileSync(targetProgram))
  const system = path.join(roots, `system-${key}`)
  if (!existsSync(system))
    await step('Preparing the Debian to start from an edge', () =>
      inPart(system, (part) => buildSystem(part, tree, { release, diskSize })),
    )
  for (const used of [system, tree]) utimesSync(used, new Date(), new Date())
  removeOld()
  const inSystem = (name) => path.join(system, name)
  return {
    image: inSystem('disk.raw'),
    vmlinuz: inSystem('vmlinuz'),
    initrd: inSystem('initrd.img'),
    release,
    tree,
  }
}

/**
 * Builds the same Debian unprepared, which needs no program of ours.
 * @param {'virtual' | 'full'} kind
 * @returns {Promise<{ tree: string, release: string } | { missing: string }>}
 */
export async function ensureSystemTree(kind = 'virtual') {
  const missing = whatIsMissing() ?? (await ensureKernel(kind))
  if (missing) return { missing }
  const kernel = findKernel(kind)
  const { release } = kernel
  const recipe = { suite, mirror, packages, unneeded, configuration, build: buildTree.toString() }
  const tree = path.join(roots, `tree-${keyOf(JSON.stringify(recipe), release)}`)
  if (!existsSync(tree))
    await step(`Building a small Debian with the kernel ${release}, once (about a minute)`, () =>
      inPart(tree, (part) => buildTree(part, kernel)),
    )
  return { tree, release }
}

function whatIsMissing() {
  if (process.getuid() !== 0) return 'building a root file system needs root'
  const programs = ['debootstrap', 'mke2fs', 'chroot']
  const folders = ['/usr/sbin', '/sbin', '/usr/bin', '/bin']
  const absent = programs.filter((name) => !folders.some((folder) => existsSync(path.join(folder, name))))
  return absent.length > 0 ? `not installed: ${absent.join(', ')}` : undefined
}

/** Builds next to the final place and moves it there complete. */
async function inPart(place, build) {
  const part = `${place}.part-${process.pid}`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { recursive: true })
  try {
    await build(part)
    // Another run may have been faster.
    if (!existsSync(place)) renameSync(part, place)
  } finally {
    rmSync(part, { recursive: true, force: true })
  }
}

async function buildTree(root, { release, modules }) {
  // Does not sync the disk after every package: an unfinished tree is thrown away.
  const env = {
    DPKG_FORCE: 'unsafe-io',
    DEBIAN_FRONTEND: 'noninteractive',
    PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
  }
  const what = 'Building a small Debian with debootstrap (is there a network?)'
  const options = ['--variant=minbase', `--include=${packages.join(',')}`]
  await must(what, 'debootstrap', [...options, suite, root, mirror], { env })
  for (const name of unneeded) rmSync(path.join(root, name), { recursive: true, force: true })
  for (const [name, text] of Object.entries(configuration)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), text)
  }
  const shadow = path.join(root, 'etc/shadow')
  writeFileSync(shadow, readFileSync(shadow, 'utf8').replace(/^root:[^:]*:/m, 'root::'))
  const wants = path.join(root, 'etc/systemd/system/multi-user.target.wants')
  symlinkSync('/lib/systemd/system/systemd-networkd.service', path.join(wants, 'systemd-networkd.service'))
  // Installed like the kernel's package does, without its scripts that make an initramfs and look for a boot loader.
  for (const name of [`vmlinuz-${release}`, `config-${release}`])
    copyFileSync(path.join(modules, 'boot', name), path.join(root, 'boot', name))
  execFileSync('cp', [
    '-a',
    path.join(modules, 'lib/modules', release),
    path.join(mkdirs(root, 'lib/modules'), release),
  ])
}

async function buildSystem(part, tree, { release, diskSize }) {
  const root = path.join(part, 'root')
  execFileSync('cp', ['-a', '--reflink=auto', tree, root])
  await must('Preparing the Debian', targetProgram, ['prepare', '--root', root])
  copyFileSync(path.join(root, 'boot', `vmlinuz-${release}`), path.join(part, 'vmlinuz'))
  copyFileSync(path.join(root, 'boot', `initrd.img-${release}`), path.join(part, 'initrd.img'))
  const image = path.join(part, 'disk.raw')
  await must('Writing the disk image', 'mke2fs', ['-q', '-t', 'ext4', '-d', root, image, diskSize])
  rmSync(root, { recursive: true })
}

function mkdirs(root, name) {
  const folder = path.join(root, name)
  mkdirSync(folder, { recursive: true })
  return folder
}

function keyOf(...parts) {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex').slice(0, 16)
}

/** Keeps the most recently used systems, and the trees that they are made from. */
function removeOld() {
  const usedAt = (name) => statSync(path.join(roots, name)).mtimeMs
  for (const kind of ['system', 'tree']) {
    const names = readdirSync(roots).filter((name) => name.startsWith(`${kind}-`) && !name.includes('.part-'))
    names.sort((a, b) => usedAt(b) - usedAt(a))
    for (const name of names.slice(kept)) rmSync(path.join(roots, name), { recursive: true, force: true })
  }
}
