import type { BootCause } from '@bootfarm/proto/boot-phases'

/** Something that can be done about a failed boot at once, or the page where it can. */
export type RemedyAction = 'roll_back' | 'assign_vdisk' | 'open_vdisk' | 'open_device' | 'open_edge'

const ofVersion: RemedyAction[] = ['roll_back', 'open_vdisk', 'assign_vdisk']

/** What each remedy of boot-phases.json leads to, the quickest first. A cause that the table gains is a type error. */
export const remedyActions: Record<BootCause, RemedyAction[]> = {
  nbp_not_found: ['open_device', 'open_edge'],
  nbp_architecture_mismatch: ['open_device', 'open_edge'],
  tftp_refused: [],
  tftp_timeout: ['open_edge'],
  file_not_found: ofVersion,
  token_refused: ['open_edge'],
  version_missing: [...ofVersion, 'open_edge'],
  store_read_error: ['roll_back', 'open_edge', 'open_vdisk'],
  kernel_mismatch: ofVersion,
  kernel_architecture_mismatch: ['assign_vdisk', 'open_vdisk'],
  kernel_without_nbd: ofVersion,
  stream_unreachable: ['open_edge'],
  disk_truncated: ofVersion,
  root_not_found: ofVersion,
  write_cache_full: ['open_vdisk', 'open_device'],
  write_cache_lost: ['open_device', 'open_edge'],
  write_cache_of_another_version: ['open_device', 'roll_back', 'open_vdisk'],
  write_cache_unusable: ['open_edge', 'open_vdisk'],
  write_cache_disk_unusable: ['open_vdisk'],
  writes_at_another_edge: ['open_device', 'open_edge'],
  guest_reported_failure: ofVersion,
  other_offer_won: [],
  address_pool_exhausted: ['open_edge'],
  nbp_not_started: ['open_device'],
  tftp_option_refused: [],
  path_mtu_black_hole: ['open_edge'],
  guest_stopped_reading: ofVersion,
  mac_in_use: ['open_device'],
  identity_refused: ['open_device'],
}

interface RollBackVersion {
  id: string
  number: number
  access: string | null
  allowedSteps: readonly string[]
}

/**
 * The version to go back to from the one of a failed boot: the newest before it that was released. Null if there is
 * none, or if devices get another version by now anyway.
 */
export function rollBackVersion<V extends RollBackVersion>(versions: V[], failedNumber: number | null): V | null {
  const failed = versions.find(({ number }) => number === failedNumber)
  if (failedNumber === null || failed?.access !== 'default') return null
  return versions
    .filter(({ number, allowedSteps }) => number < failedNumber && allowedSteps.includes('revert'))
    .reduce<V | null>((best, version) => (best && best.number > version.number ? best : version), null)
}
