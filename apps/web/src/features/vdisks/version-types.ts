import type { RouterOutputs } from '../../lib/trpc'

export type VdiskDetail = RouterOutputs['vdisk']['get']
export type Version = VdiskDetail['versions'][number]
export type VersionPreview = RouterOutputs['version']['preview']

/** In which state a version can begin. */
export const firstStates = [
  { value: 'test', label: 'Test' },
  { value: 'released', label: 'Release' },
]
