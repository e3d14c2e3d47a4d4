'use client'

import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '../../lib/trpc'
import type { ScopeChoice } from './schedule-editor'

const placesMax = 100

/** Each site by itself, and all of a farm together; undefined until they are known. */
export function useScopes(): { farmId: string; farmName: string; scopes: ScopeChoice[] }[] | undefined {
  const trpc = useTRPC()
  const farms = useQuery(trpc.farm.list.queryOptions({ limit: placesMax })).data?.items
  const sites = useQuery(trpc.site.list.queryOptions({ limit: placesMax })).data?.items
  if (!farms || !sites) return undefined
  return farms.map(({ id, name }) => {
    const own = sites.filter(({ farmId }) => farmId === id)
    const scopes = own.map((site) => ({ siteId: site.id, label: site.name, timeZone: site.timeZone }))
    const all = { siteId: null, label: `All sites of ${name}`, timeZone: own[0]?.timeZone ?? 'UTC' }
    return { farmId: id, farmName: name, scopes: [...scopes, all] }
  })
}

/** `YYYY-MM-DD` of the viewer's tomorrow. */
export function tomorrow(now: Date): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1)
  const two = (number: number) => String(number).padStart(2, '0')
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`
}
