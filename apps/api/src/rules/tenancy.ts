import { parseQuotas, type QuotaDefaults, selfServiceQuotas } from './quotas.ts'

/** How an installation deals with its organizations: docs/guides/organizations.md. */
export interface TenancySettings {
  /** Whether people may sign up and make organizations of their own. */
  isSelfService: boolean
  /** What an organization of self-service may have. */
  quotas: QuotaDefaults
  /** That one person may make. */
  organizationsPerPersonMax: number
  /** Between asking for a deletion and the deletion. */
  deletionGraceDays: number
  /** Who runs the installation, as people reach them: an address, a name, a link. Null where nobody is named. */
  contact: string | null
}

export const defaultTenancy: TenancySettings = {
  isSelfService: false,
  quotas: parseQuotas(selfServiceQuotas),
  organizationsPerPersonMax: 3,
  deletionGraceDays: 14,
  contact: null,
}
