import { z } from 'zod'

/**
 * The objects of which an organization may have a limited number. The database counts and enforces: migration
 * `organizations`.
 */
const quotaNames = ['sites', 'edges', 'devices', 'vdisks', 'members', 'api_keys', 'webhooks', 'schedules'] as const
export const quotaName = z.enum(quotaNames)
export type QuotaName = (typeof quotaNames)[number]

/** Their names in sentences. */
const quotaWords: Record<QuotaName, string> = {
  sites: 'sites',
  edges: 'edges',
  devices: 'devices',
  vdisks: 'vDisks',
  members: 'members',
  api_keys: 'API keys',
  webhooks: 'webhooks',
  schedules: 'schedules',
}

export const quotaCountMax = 10_000_000

export const quotaView = z.object({
  name: quotaName,
  used: z.number().int(),
  allowed: z.number().int().nullable().describe('Null: no limit.'),
})
export type QuotaView = z.infer<typeof quotaView>

export type QuotaDefaults = Partial<Record<QuotaName, number>>

/** The quotas of a new self-service organization if the setting names no others. */
export const selfServiceQuotas = 'sites=2,edges=4,devices=100,vdisks=10,members=10,api_keys=10,webhooks=5,schedules=20'

/** Reads `sites=2,devices=100`; quotas that it does not name have no limit. Throws one sentence for invalid text. */
export function parseQuotas(text: string): QuotaDefaults {
  const parts = text.split(',').flatMap((part) => part.trim() || [])
  return Object.fromEntries(
    parts.map((part) => {
      const [, name, count] = /^([a-z_]+)=(\d{1,8})$/.exec(part) ?? []
      if (!quotaName.safeParse(name).success || Number(count) > quotaCountMax)
        throw new Error(`${part}: write NAME=COUNT with one of ${quotaNames.join(', ')}`)
      return [name, Number(count)]
    }),
  )
}

/** The database's refusal, by the message that it raises: `quota exceeded: devices used 3 allowed 3 added 1`. */
const refusal = /quota exceeded: (\w+) used (\d+) allowed (\d+) added (\d+)/

interface QuotaRefusal {
  quota: QuotaName
  used: number
  allowed: number
  added: number
}

export function quotaRefusalIn(text: string): QuotaRefusal | null {
  const [, name, used, allowed, added] = refusal.exec(text) ?? []
  const quota = quotaName.safeParse(name)
  if (!quota.success) return null
  return { quota: quota.data, used: Number(used), allowed: Number(allowed), added: Number(added) }
}

/** Names the quota, its use, its limit, and the person to ask. */
export function quotaSentence({ quota, used, allowed, added }: QuotaRefusal): string {
  const words = quotaWords[quota]
  return `This organization can have ${allowed} ${words} and has ${used}, so ${added} more exceed the limit. Delete some, or contact the operator of this installation, shown on the page “Organization”.`
}
