import type { RouterOutputs } from '../../lib/trpc'

export type VdiskDetail = RouterOutputs['vdisk']['get']
export type Version = VdiskDetail['versions'][number]
export type VersionPreview = RouterOutputs['version']['preview']

/** The state in which a version can start. */
export const firstStates = [
  { value: 'test', label: 'Test' },
  { value: 'released', label: 'Release' },
]
