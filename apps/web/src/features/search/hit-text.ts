import type { IconName } from '../../components/icon'
import type { RouterOutputs } from '../../lib/trpc'

export type SearchGroup = RouterOutputs['search']['find']['groups'][number]
export type SearchHit = SearchGroup['items'][number]
type Kind = SearchGroup['kind']

export const kindTexts: Record<Kind, { title: string; icon: IconName; href: (hit: SearchHit) => string }> = {
  device: { title: 'Devices', icon: 'device', href: ({ id }) => `/devices/${id}` },
  boot: { title: 'Boots', icon: 'boot', href: ({ id }) => `/boots/${id}` },
  vdisk: { title: 'vDisks', icon: 'vdisk', href: ({ id }) => `/vdisks/${id}` },
  version: { title: 'Versions', icon: 'vdisk', href: ({ vdiskId }) => `/vdisks/${vdiskId}` },
  site: { title: 'Sites', icon: 'site', href: ({ id }) => `/sites/${id}` },
  edge: { title: 'Edges', icon: 'edge', href: ({ id }) => `/edges/${id}` },
  collection: { title: 'Collections', icon: 'device', href: ({ id }) => `/collections/${id}` },
  person: { title: 'People', icon: 'members', href: ({ id }) => `/members/${id}` },
}

const fieldTexts: Record<NonNullable<SearchHit['match']>['field'], string> = {
  mac: 'MAC',
  ip: 'IP',
  id: 'ID',
  machineId: 'UUID',
  tag: 'tag',
  label: 'label',
  email: '',
}

/** What was found, if it is not the name: "MAC 52:54:00:12:34:56". */
export function matchText(match: SearchHit['match']): string | null {
  return match && `${fieldTexts[match.field]} ${match.value}`.trim()
}

/** For screen readers, which do not see the list grow. */
export function countText(groups: SearchGroup[]): string {
  const count = groups.reduce((sum, { items }) => sum + items.length, 0)
  if (count === 0) return 'Nothing found.'
  const some = groups.some(({ hasMore }) => hasMore) ? ' The first ones are shown.' : ''
  return `${count} ${count === 1 ? 'result' : 'results'}.${some}`
}
