import { existsSync, readFileSync } from 'node:fs'
import { UserError } from './fail.mjs'
import { say } from './progress.mjs'
import { capture } from './run.mjs'

/**
 * A program or file that is needed from the system, and the Debian package that contains it.
 * @typedef {{ paths: string[], debian: string }} Needed
 */

const network = { paths: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'], debian: 'iproute2' }
const bootPrograms = { paths: ['/usr/lib/ipxe/undionly.kpxe'], debian: 'ipxe' }

/** For an initramfs and a root file system. */
export const imagePackages = [
  { paths: ['/usr/sbin/debootstrap', '/sbin/debootstrap'], debian: 'debootstrap' },
  { paths: ['/bin/busybox', '/usr/bin/busybox'], debian: 'busybox-static' },
  { paths: ['/sbin/mke2fs', '/usr/sbin/mke2fs'], debian: 'e2fsprogs' },
  { paths: ['/sbin/depmod', '/usr/sbin/depmod'], debian: 'kmod' },
]

/** For virtual machines that boot over the network. */
export const machinePackages = [
  network,
  bootPrograms,
  ...imagePackages,
  { paths: ['/usr/bin/qemu-system-x86_64'], debian: 'qemu-system-x86' },
  { paths: ['/usr/share/OVMF/OVMF_CODE_4M.fd'], debian: 'ovmf' },
  { paths: ['/usr/lib/ipxe/qemu/pxe-virtio.rom'], debian: 'ipxe-qemu' },
  { paths: ['/usr/sbin/dnsmasq'], debian: 'dnsmasq-base' },
]

/** For real machines on a LAN, in addition to what they boot. */
export const lanPackages = [network, bootPrograms]

/** For boot media, and to inspect them from outside. */
const mediaPackages = [
  { paths: ['/usr/lib/ISOLINUX/isolinux.bin'], debian: 'isolinux' },
  { paths: ['/usr/lib/syslinux/modules/bios/ldlinux.c32'], debian: 'syslinux-common' },
  { paths: ['/usr/bin/isoinfo'], debian: 'genisoimage' },
  { paths: ['/sbin/fsck.fat', '/usr/sbin/fsck.fat'], debian: 'dosfstools' },
]

/** For a disk image with its own boot loader. */
const wholeDiskPackages = [
  { paths: ['/usr/bin/syslinux'], debian: 'syslinux' },
  { paths: ['/usr/lib/SYSLINUX.EFI/efi64/syslinux.efi'], debian: 'syslinux-efi' },
  { paths: ['/usr/bin/mcopy'], debian: 'mtools' },
]

/** For disk images as distributions lay them out. */
const diskPackages = [
  { paths: ['/sbin/mke2fs', '/usr/sbin/mke2fs'], debian: 'e2fsprogs' },
  { paths: ['/sbin/mkfs.vfat', '/usr/sbin/mkfs.vfat'], debian: 'dosfstools' },
  { paths: ['/usr/bin/mcopy'], debian: 'mtools' },
  { paths: ['/sbin/sfdisk', '/usr/sbin/sfdisk'], debian: 'fdisk' },
  { paths: ['/sbin/mkfs.xfs', '/usr/sbin/mkfs.xfs'], debian: 'xfsprogs' },
  { paths: ['/bin/mkfs.btrfs', '/sbin/mkfs.btrfs', '/usr/sbin/mkfs.btrfs'], debian: 'btrfs-progs' },
  { paths: ['/usr/bin/mksquashfs'], debian: 'squashfs-tools' },
]

/** For logical volumes, which are made in a virtual machine. */
const volumePackages = [{ paths: ['/sbin/lvm', '/usr/sbin/lvm'], debian: 'lvm2' }]

/** For disk images in other formats than raw. */
const formatPackages = [
  { paths: ['/usr/bin/qemu-img'], debian: 'qemu-utils' },
  { paths: ['/usr/bin/vhdimount'], debian: 'libvhdi-utils' },
]

/** Other DHCP clients and relay agents, and a client that looks for IPv6 routers. */
const dhcpPackages = [
  { paths: ['/sbin/dhclient', '/usr/sbin/dhclient'], debian: 'isc-dhcp-client' },
  { paths: ['/usr/sbin/dhcrelay'], debian: 'isc-dhcp-relay' },
  { paths: ['/usr/bin/rdisc6', '/bin/rdisc6'], debian: 'ndisc6' },
  { paths: ['/bin/busybox', '/usr/bin/busybox'], debian: 'busybox-static' },
  { paths: ['/usr/sbin/dnsmasq'], debian: 'dnsmasq-base' },
]

/** Other TFTP clients, which must work with our server. */
const tftpClientPackages = [
  { paths: ['/usr/bin/tftp'], debian: 'tftp-hpa' },
  { paths: ['/usr/bin/atftp'], debian: 'atftp' },
  { paths: ['/usr/bin/curl'], debian: 'curl' },
  { paths: ['/bin/busybox', '/usr/bin/busybox'], debian: 'busybox-static' },
]

const testPackages = [
  network,
  ...dhcpPackages,
  { paths: ['/usr/sbin/nft', '/sbin/nft'], debian: 'nftables' },
  ...tftpClientPackages,
  ...diskPackages,
  ...volumePackages,
  ...formatPackages,
  { paths: ['/usr/bin/strace'], debian: 'strace' },
  {
    paths: ['/usr/lib/x86_64-linux-gnu/libnss3.so', '/usr/lib/aarch64-linux-gnu/libnss3.so'],
    debian: 'libnss3',
  },
  ...(process.arch === 'x64'
    ? [
        ...machinePackages,
        ...mediaPackages,
        ...wholeDiskPackages,
        { paths: ['/usr/bin/tcpdump', '/usr/sbin/tcpdump'], debian: 'tcpdump' },
        { paths: ['/usr/bin/swtpm'], debian: 'swtpm' },
      ]
    : []),
]

/** Needed only by `npm run test:all`. */
const longTestPackages =
  process.arch === 'x64'
    ? [
        { paths: ['/usr/bin/qemu-system-aarch64'], debian: 'qemu-system-arm' },
        { paths: ['/usr/share/AAVMF/AAVMF_CODE.fd'], debian: 'qemu-efi-aarch64' },
      ]
    : []

/**
 * Installs what the tests need where it may; otherwise prints and returns what is missing, so that tests are skipped.
 */
export async function ensureTestPackages(withLong) {
  const needed = withLong ? [...testPackages, ...longTestPackages] : testPackages
  const missing = missingOf(needed)
  if (missing.length === 0) return { missing }
  if (!isOursToInstall()) {
    say(`Not installed here, and so some tests are skipped: ${missing.join(', ')}`)
    return { missing }
  }
  await install(missing)
  return { missing: missingOf(needed) }
}

/**
 * Installs missing packages where it may (root on Debian), and says so first; otherwise throws a UserError that names
 * them.
 * @param {string} purpose what needs them, for the sentence
 * @param {Needed[]} needed
 */
export async function requirePackages(purpose, needed) {
  const missing = missingOf(needed)
  if (missing.length === 0) return
  if (!isOursToInstall())
    throw new UserError(
      `${purpose} needs what these Debian packages have, and it is not installed here: ${missing.join(', ')}.`,
    )
  await install(missing)
  const still = missingOf(needed)
  if (still.length > 0)
    throw new UserError(`${purpose} needs ${still.join(', ')}; apt installed it, and its files are not there.`)
}

function isOursToInstall() {
  const isDebian =
    existsSync('/etc/os-release') && /^ID(_LIKE)?=.*debian/m.test(readFileSync('/etc/os-release', 'utf8'))
  return process.getuid() === 0 && isDebian
}

async function install(missing) {
  say(`Installing with apt: ${missing.join(', ')}`)
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  await capture('apt-get', ['update', '-q'], { env })
  const { code, output } = await capture('apt-get', ['install', '-yq', '--no-install-recommends', ...missing], { env })
  if (code !== 0) throw new UserError(`installing ${missing.join(', ')} with apt failed:\n${output.slice(-2000)}`)
}

function missingOf(needed) {
  const missing = needed.filter(({ paths }) => !paths.some((file) => existsSync(file)))
  return [...new Set(missing.map(({ debian }) => debian))]
}
