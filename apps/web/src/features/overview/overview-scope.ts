import { z } from 'zod'

/** The part of the organization that the overview shows: in the address, so that a link shows the same. */
export const scopeShape = { farm: z.uuid().optional(), site: z.uuid().optional() }

export interface Scope {
  farmId?: string
  siteId?: string
}

export function scopeOf({ farm, site }: { farm?: string | undefined; site?: string | undefined }): Scope {
  return { ...(farm && { farmId: farm }), ...(site && { siteId: site }) }
}

/** The address of a list within the scope. */
export function hrefIn({ farmId, siteId }: Scope, path: string, filters: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    ...filters,
    ...(farmId && { farm: farmId }),
    ...(siteId && { site: siteId }),
  }).toString()
  return query === '' ? path : `${path}?${query}`
}
