import { z } from 'zod'

/** The noun before the dot of a procedure's name. */
export const nounOptions = [
  { value: 'organization.', label: 'Organization' },
  { value: 'member.', label: 'Members' },
  { value: 'invitation.', label: 'Invitations' },
  { value: 'account.', label: 'Accounts' },
  { value: 'farm.', label: 'Farms' },
  { value: 'site.', label: 'Sites' },
  { value: 'edge.', label: 'Edges' },
  { value: 'collection.', label: 'Collections' },
  { value: 'device.', label: 'Devices' },
  { value: 'discovered.', label: 'Discovered devices' },
  { value: 'vdisk.', label: 'vDisks' },
  { value: 'bootMenu.', label: 'Boot menus' },
  { value: 'schedule.', label: 'Schedules' },
  { value: 'apiKey.', label: 'API keys' },
  { value: 'webhook.', label: 'Webhooks' },
]
export const actorOptions = [
  { value: 'person', label: 'People' },
  { value: 'api_key', label: 'API keys' },
  { value: 'edge', label: 'Edges' },
  { value: 'system', label: 'The control plane' },
  { value: 'platform', label: 'Platform operators' },
]
export const periodOptions = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
  { value: '365', label: 'Last year' },
]

const actorKind = z.enum(['person', 'api_key', 'edge', 'system', 'platform'])
const dayMs = 86_400_000

export const auditFilterShape = {
  search: z.string().max(64).optional(),
  noun: z.string().max(32).optional(),
  actor: actorKind.optional(),
  period: z.enum(['1', '7', '30', '365']).optional(),
  object: z.uuid().optional(),
}

interface Filters {
  search?: string | undefined
  noun?: string | undefined
  actor?: z.infer<typeof actorKind> | undefined
  period?: string | undefined
  object?: string | undefined
}

/** The filters of the URL as the API takes them. */
export function auditInput({ search, noun, actor, period, object }: Filters, now: Date) {
  return {
    ...(search ? { search } : {}),
    ...(noun ? { action: noun } : {}),
    ...(actor ? { actorKind: actor } : {}),
    ...(period ? { since: new Date(now.getTime() - Number(period) * dayMs).toISOString() } : {}),
    ...(object ? { objectId: object } : {}),
  }
}

/** Where the same entries come as a file. */
export function exportHref(input: Record<string, string>, format: 'csv' | 'jsonl'): string {
  return `/api/audit/export?${new URLSearchParams({ ...input, format })}`
}
