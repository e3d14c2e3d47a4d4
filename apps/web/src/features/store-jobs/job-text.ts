import type { Listed } from '../../lib/trpc'

export type StoreJob = Listed<'storeJob'>

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
  export: 'Export',
  pack: 'Make the difference for',
  fetch: 'Fetch',
}

export const formatText: Record<NonNullable<StoreJob['format']>, string> = { raw: 'raw', qcow2: 'qcow2', vhdx: 'VHDX' }

/** The work and its object. */
export function jobText({
  kind,
  version,
  intoVersion,
  vdisk,
  device,
  sourcePath,
  sourceUrl,
  format,
}: StoreJob): string {
  const what = [vdisk?.name, version && `version ${version.number}`].filter(Boolean).join(' ')
  const into = intoVersion ? ` into version ${intoVersion.number}` : ''
  const source = sourcePath ?? sourceUrl
  const from = source ? ` from ${source}` : ''
  const as = format ? ` as ${formatText[format]}` : ''
  const written = ` the writes of ${device?.name ?? 'a device'}${what && ' on'}`
  const writing = ` the writes of ${device?.name ?? 'a device'}`
  const whose = kind === 'drop_layer' ? written : kind === 'release_home' ? writing : ''
  return `${kindText[kind]}${whose}${what ? ` ${what}` : kind === 'verify' ? ' the whole store' : ''}${into}${from}${as}`
}

/** Null until the edge has reported the total. */
export function jobPercent({ progressBytes, totalBytes, state }: StoreJob): number | null {
  if (state === 'done') return 100
  if (totalBytes === 0) return null
  return Math.min(100, Math.floor((progressBytes * 100) / totalBytes))
}

export function isActive({ state }: Pick<StoreJob, 'state'>): boolean {
  return state === 'queued' || state === 'running'
}

/** A seal takes almost no time, so a running one is not cancelled. */
export function isCancellable({ state, kind }: Pick<StoreJob, 'state' | 'kind'>): boolean {
  return state === 'queued' || (state === 'running' && kind !== 'seal')
}
