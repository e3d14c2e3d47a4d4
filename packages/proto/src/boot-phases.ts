import table from '../boot-phases.json' with { type: 'json' }

/** The only table of boot phases, outcomes and causes; the edge's Zig tests read the same file. */
export const bootPhases = ['firmware', 'dhcp', 'nbp', 'loader', 'stage1', 'breather', 'stage2', 'ready'] as const
export type BootPhase = (typeof bootPhases)[number]

export const bootOutcomes = ['ready', 'failed', 'silent', 'superseded', 'local_disk'] as const

/** The control plane tells a power-on that was never answered from a boot; an edge reports one of `bootOutcomes`. */
export const listedOutcomes = [...bootOutcomes, 'no_response'] as const
export type BootOutcome = (typeof listedOutcomes)[number]

export const valueSources = ['observed', 'reported', 'inferred'] as const

export const bootCauses = [
  'nbp_not_found',
  'nbp_architecture_mismatch',
  'tftp_refused',
  'tftp_timeout',
  'file_not_found',
  'token_refused',
  'version_missing',
  'store_read_error',
  'kernel_mismatch',
  'kernel_architecture_mismatch',
  'kernel_without_nbd',
  'stream_unreachable',
  'disk_truncated',
  'root_not_found',
  'write_cache_full',
  'write_cache_lost',
  'write_cache_of_another_version',
  'write_cache_unusable',
  'write_cache_disk_unusable',
  'writes_at_another_edge',
  'guest_reported_failure',
  'other_offer_won',
  'address_pool_exhausted',
  'nbp_not_started',
  'tftp_option_refused',
  'path_mtu_black_hole',
  'guest_stopped_reading',
  'mac_in_use',
  'identity_refused',
] as const
export type BootCause = (typeof bootCauses)[number]

export interface BootPhaseText {
  name: string
  title: string
  begins: string
  ends: string
  seenBy: string
}

export interface BootCauseText {
  name: string
  sentence: string
  remedy: string
}

/** Returns the table's row for a phase; throws for an unknown name. */
export function bootPhaseText(name: BootPhase): BootPhaseText {
  return find(table.phases, name)
}

/** Explains a cause to people, and what to do about it. */
export function bootCauseText(name: BootCause): BootCauseText {
  return find(table.causes, name)
}

function find<T extends { name: string }>(rows: T[], name: string): T {
  const row = rows.find((candidate) => candidate.name === name)
  if (!row) throw new Error(`boot-phases.json has no row named ${name}`)
  return row
}
