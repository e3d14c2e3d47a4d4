import type { BootCause } from '@bootfarm/proto/boot-phases'

/** The sections of the documentation that pages lead to; a test checks that each of them exists. */
export const helpTopics = {
  boots: 'guides/operations#why-a-boot-failed',
  consoleLines: 'guides/real-machines#when-it-does-not-boot',
  firmware: 'guides/firmware-and-dhcp#in-the-machines-firmware',
  criticalPath: 'reference/boot-flow#the-critical-path',
  addEdge: 'guides/operations#installing-edges',
  noMachineBoots: 'guides/operations#when-no-machine-boots',
  images: 'guides/images#formats',
  imports: 'guides/images#troubleshooting',
  storageJobs: 'guides/versions#storage-jobs',
  discovered: 'guides/operations#discovered-devices',
  storm: 'guides/operations#a-boot-storm',
  explore: 'guides/operations#which-boots-are-slow-and-why',
  alerts: 'reference/alerts',
  objectives: 'reference/alerts#objectives',
  findings: 'reference/findings#what-is-compared',
  network: 'reference/network#what-is-told-and-when',
} as const

const bootPrograms = 'guides/boot-programs#sets'
const tftp = 'guides/firmware-and-dhcp#tftp'
const console = helpTopics.consoleLines
const disks = 'guides/operations#when-an-edges-disk-fails'
const caches = 'guides/write-caches#when-a-write-cache-is-full'

/** Where the documentation says more about a failed boot's cause. */
export const causeHelp: Record<BootCause, string> = {
  nbp_not_found: bootPrograms,
  nbp_architecture_mismatch: bootPrograms,
  tftp_refused: tftp,
  tftp_timeout: tftp,
  file_not_found: console,
  token_refused: console,
  version_missing: 'guides/versions#placement',
  store_read_error: disks,
  kernel_mismatch: 'guides/images#the-initramfs',
  kernel_architecture_mismatch: console,
  kernel_without_nbd: helpTopics.imports,
  stream_unreachable: 'guides/operations#ports',
  disk_truncated: helpTopics.imports,
  root_not_found: 'guides/real-machines#kernel-command-line',
  write_cache_full: caches,
  write_cache_lost: 'guides/write-caches#guarantees',
  write_cache_of_another_version: 'guides/write-caches#another-version',
  write_cache_unusable: disks,
  write_cache_disk_unusable: 'guides/write-caches#device_ram_local_disk-memory-then-a-local-disk',
  writes_at_another_edge: 'guides/write-caches#the-write-owner-of-a-device',
  guest_reported_failure: console,
  other_offer_won: 'guides/firmware-and-dhcp#in-the-networks-dhcp-server',
  address_pool_exhausted: 'guides/firmware-and-dhcp#the-edge-as-dhcp-server',
  nbp_not_started: 'guides/boot-programs#when-a-program-does-not-start',
  tftp_option_refused: tftp,
  path_mtu_black_hole: 'guides/operations#the-stream-encryption-and-packet-size',
  guest_stopped_reading: 'guides/operations#running-devices',
  mac_in_use: 'guides/device-identity#what-it-protects',
  identity_refused: 'guides/device-identity#deciding',
}
