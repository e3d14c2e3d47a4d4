import type { RouterOutputs } from '@bootfarm/api/router'

export type Organization = RouterOutputs['organization']['get']
export type Quota = RouterOutputs['organization']['usage']['quotas'][number]

/** Their names on pages, in the order of the list. */
export const quotaTitles: Record<Quota['name'], string> = {
  sites: 'Sites',
  edges: 'Edges',
  devices: 'Devices',
  vdisks: 'vDisks',
  members: 'Members',
  api_keys: 'API keys',
  webhooks: 'Webhooks',
  schedules: 'Schedules',
}
