import { parseQuotas, type QuotaDefaults, selfServiceQuotas } from './quotas.ts'

/** How an installation deals with its organizations: docs/guides/organizations.md. */
export interface TenancySettings {
  /** People may sign up and create organizations. */
  isSelfService: boolean
  /** The quotas of a self-service organization. */
  quotas: QuotaDefaults
  organizationsPerPersonMax: number
  /** Time between the request for a deletion and the deletion. */
  deletionGraceDays: number
  /** The operator's contact: an address, a name, a link. Null if none is named. */
  contact: string | null
}

export const defaultTenancy: TenancySettings = {
  isSelfService: false,
  quotas: parseQuotas(selfServiceQuotas),
  organizationsPerPersonMax: 3,
  deletionGraceDays: 14,
  contact: null,
}
