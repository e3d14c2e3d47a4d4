/** Who a part of a boot's time belongs to, in words for people. */

/** What kind of thing an owner is: pages colour by it. */
export type OwnerKind =
  | 'firmware'
  | 'dhcp'
  | 'nbp'
  | 'loader'
  | 'stage1'
  | 'kernel'
  | 'initramfs'
  | 'system'
  | 'unit'
  | 'stream'
  | 'edge'
  | 'unattributed'

interface OwnerText {
  kind: OwnerKind
  title: string
  /** What makes it shorter; null: nothing that can be set. */
  help: string | null
}

const owners = {
  power_on: {
    kind: 'firmware',
    title: 'Firmware: power-on to first packet',
    help: 'Enable fast boot in the firmware, and put network boot first in its boot order.',
  },
  firmware_pause: {
    kind: 'firmware',
    title: 'Firmware: from DHCP to its first download',
    help: 'Shorten the PXE menu timeout of the firmware and of the DHCP server, and disable boot entries before this one.',
  },
  firmware_offers: {
    kind: 'firmware',
    title: 'Firmware: collects DHCP offers',
    help: null,
  },
  dhcp_server: {
    kind: 'dhcp',
    title: 'DHCP server',
    help: 'Check this DHCP server’s load and its ping check before an offer, and fast link-up on the switch port.',
  },
  dhcp: { kind: 'dhcp', title: 'DHCP exchange', help: 'Enable fast link-up (portfast) on the switch port.' },
  nbp: {
    kind: 'nbp',
    title: 'Download of the boot program',
    help: 'Use UEFI HTTP boot, or a network path without loss: TFTP sends a window and waits for its acknowledgement.',
  },
  nbp_pause: {
    kind: 'firmware',
    title: 'Firmware: pause in the download',
    help: 'Check the path for packet loss: TFTP clients repeat a request after seconds.',
  },
  loader_start: {
    kind: 'loader',
    title: 'Boot program: start',
    help: 'A boot program with fewer drivers starts faster: try the set with the native driver of this card.',
  },
  loader_pause: {
    kind: 'loader',
    title: 'Boot program: pause between downloads',
    help: 'Check the device’s screen: boot programs pause for a key, or to unpack a file.',
  },
  loader_router: {
    kind: 'loader',
    title: 'iPXE: search for an IPv6 router',
    help: 'An edge on this segment ends it, with IPv6, CAP_NET_RAW and without --no-router-advertisement.',
  },
  boot_menu: {
    kind: 'loader',
    title: 'Boot menu',
    help: 'Shorten the timeout of the boot menu.',
  },
  loader_gap: {
    kind: 'loader',
    title: 'Boot program: before its first request',
    help: 'A boot program with fewer drivers starts faster: try the set with the native driver of this card.',
  },
  loader_dhcp: {
    kind: 'dhcp',
    title: 'Boot program: its own DHCP exchange',
    help: 'Enable fast link-up (portfast) on the switch port: boot programs restart the network card.',
  },
  loader_script: { kind: 'loader', title: 'Download of the boot script', help: null },
  loader_kernel: {
    kind: 'loader',
    title: 'Download of the kernel',
    help: 'Check the link speed of the device and of the edge: boot programs download at the speed of the network.',
  },
  loader_initrd: {
    kind: 'loader',
    title: 'Download of the initramfs',
    help: 'Make the initramfs smaller (only this device’s drivers), or compress it with zstd.',
  },
  loader_last: {
    kind: 'loader',
    title: 'Boot program: from its last download to its last command',
    help: 'Make the initramfs smaller: the boot program unpacks and verifies what it has loaded.',
  },
  boot_command: { kind: 'loader', title: 'Boot program: says that it starts the kernel', help: null },
  loader_stall: {
    kind: 'loader',
    title: 'Stalled download of the boot program',
    help: 'Check the path between edge and device for packet loss.',
  },
  loader: {
    kind: 'loader',
    title: 'Download of kernel and initramfs',
    help: 'Make the initramfs smaller (only this device’s drivers), or compress it with zstd.',
  },
  stage1: {
    kind: 'stage1',
    title: 'Loader reads the disk',
    help: 'Boot the kernel directly: then the loader reads no disk over HTTP.',
  },
  stage1_pause: {
    kind: 'stage1',
    title: 'Loader: works between disk reads',
    help: 'Shorten the menu timeout of the loader on the disk.',
  },
  kernel_hand_over: {
    kind: 'kernel',
    title: 'Boot program starts the kernel',
    help: 'Make the initramfs smaller: the boot program copies and verifies it before the kernel starts.',
  },
  kernel_unreported: {
    kind: 'kernel',
    title: 'Kernel and initramfs start',
    help: 'Prepare the image with bootfarm-target: then the device reports what its kernel and initramfs do here.',
  },
  kernel: {
    kind: 'kernel',
    title: 'Kernel: until its first program',
    help: 'Make the initramfs smaller, and leave out built-in drivers that this device does not have.',
  },
  initramfs: { kind: 'initramfs', title: 'Initramfs', help: null },
  system: { kind: 'system', title: 'OS', help: null },
  short_units: {
    kind: 'system',
    title: 'systemd: many short units',
    help: 'Disable services that this device does not need.',
  },
  unit: {
    kind: 'unit',
    title: 'Unit',
    help: 'Disable this unit, make it faster, or order it after the start (After=multi-user.target).',
  },
  stream: {
    kind: 'stream',
    title: 'OS start from the streamed disk',
    help: 'Prepare the image with bootfarm-target: then the device reports which units take the time.',
  },
  stream_pause: {
    kind: 'stream',
    title: 'OS: works without its disk',
    help: 'Prepare the image with bootfarm-target: then the device reports which units take the time.',
  },
  fail_over: {
    kind: 'edge',
    title: 'Fail-over to another edge',
    help: 'Find out why the first edge stopped: see its page.',
  },
  unattributed: { kind: 'unattributed', title: 'Unattributed', help: null },
} as const satisfies Record<string, OwnerText>
export type OwnerName = keyof typeof owners

/** What the steps of our own initramfs do, and what shortens them. Devices may report any name. */
const initramfsSteps: Partial<Record<string, { title: string; help: string }>> = {
  drivers: { title: 'loads drivers', help: 'Build the initramfs with this device’s drivers only.' },
  network: {
    title: 'sets up the network',
    help: 'Enable fast link-up (portfast) on the switch port.',
  },
  disk: { title: 'connects the disk', help: 'See the disk read latency: the edge or its store is slow.' },
  root: { title: 'mounts the root file system', help: 'See the disk read latency: the edge or its store is slow.' },
  mount: { title: 'mounts the root file system', help: 'See the disk read latency: the edge or its store is slow.' },
  overlay: { title: 'sets up the write cache', help: 'Choose a smaller write cache in RAM.' },
  'hand-over': { title: 'starts the OS', help: 'See the disk read latency: the edge or its store is slow.' },
}

const systemSteps: Partial<Record<string, string>> = {
  'load init': 'OS: loads systemd from the disk',
  initrd: 'systemd in the initramfs',
  userspace: owners.short_units.title,
  generators: 'systemd: runs generators',
  'load units': 'systemd: loads unit files',
  system: 'OS: start until it reports ready',
  'until ready': 'OS: start until it reports ready',
}

/** An owner as it stands on a segment. `key` tells owners apart that have one name, such as two units. */
export interface Owner {
  key: string
  kind: OwnerKind
  title: string
  help: string | null
}

/** @param detail which one: an address, the name of a step or of a unit */
export function ownerOf(name: OwnerName, detail = ''): Owner {
  const { kind, title, help } = owners[name]
  const key = detail === '' ? name : `${name}:${detail}`
  if (detail === '') return { key, kind, title, help }
  if (name === 'initramfs') {
    const known = Object.hasOwn(initramfsSteps, detail) ? initramfsSteps[detail] : undefined
    return { key, kind, title: `${title}: ${known?.title ?? detail}`, help: known?.help ?? null }
  }
  if (name === 'system') {
    const known = Object.hasOwn(systemSteps, detail) ? systemSteps[detail] : undefined
    return { key, kind, title: known ?? `${title}: ${detail}`, help: owners.short_units.help }
  }
  return { key, kind, title: `${title} ${detail}`, help }
}
