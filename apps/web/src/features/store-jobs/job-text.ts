import type { RouterOutputs } from '../../lib/trpc'

export type StoreJob = RouterOutputs['storeJob']['list']['items'][number]

const kindText: Record<StoreJob['kind'], string> = {
  seal: 'Seal',
  merge: 'Merge',
  import: 'Import',
  verify: 'Verify',
  gc: 'Free space',
  delete: 'Delete',
  drop_layer: 'Delete',
  clear_profile: 'Clear the boot profile of',
  release_home: 'Release',
  adopt: 'Adopt',
}

/** What is done, to what. */
export function jobText({ kind, version, intoVersion, vdisk, device, sourcePath }: StoreJob): string {
  const what = [vdisk?.name, version && `version ${version.number}`].filter(Boolean).join(' ')
  const into = intoVersion ? ` into version ${intoVersion.number}` : ''
  const from = sourcePath ? ` from ${sourcePath}` : ''
  const written = ` the writes of ${device?.name ?? 'a device'}${what && ' on'}`
  const writing = ` the writes of ${device?.name ?? 'a device'}`
  const whose = kind === 'drop_layer' ? written : kind === 'release_home' ? writing : ''
  return `${kindText[kind]}${whose}${what ? ` ${what}` : kind === 'verify' ? ' the whole store' : ''}${into}${from}`
}

/** Null while the edge has not said how much there is. */
export function jobPercent({ progressBytes, totalBytes, state }: StoreJob): number | null {
  if (state === 'done') return 100
  if (totalBytes === 0) return null
  return Math.min(100, Math.floor((progressBytes * 100) / totalBytes))
}

export function isActive({ state }: Pick<StoreJob, 'state'>): boolean {
  return state === 'queued' || state === 'running'
}

/** A seal takes no time to speak of, so one that is under way is not cancelled. */
export function isCancellable({ state, kind }: Pick<StoreJob, 'state' | 'kind'>): boolean {
  return state === 'queued' || (state === 'running' && kind !== 'seal')
}
