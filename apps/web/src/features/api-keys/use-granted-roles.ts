'use client'

import { useQuery } from '@tanstack/react-query'
import { type RouterInputs, type RouterOutputs, useTRPC } from '../../lib/trpc'

export type Role = RouterInputs['apiKey']['create']['role']
type Grant = RouterOutputs['session']['me']['grants'][number]

/** From the most that a role may down to the least. */
const order: Role[] = ['owner', 'admin', 'operator', 'image_manager', 'auditor', 'viewer']

function isOfOrganization(grant: Grant): boolean {
  return grant.farmId === null && grant.siteId === null && grant.collectionId === null
}

/** The roles that the signed-in person can give a key; the API refuses what is beyond them. */
export function useGrantedRoles(): Role[] {
  const { data } = useQuery(useTRPC().session.me.queryOptions())
  const own = data?.grants.filter(isOfOrganization).map(({ role }) => role) ?? []
  return own.includes('owner') ? order : order.filter((role) => role !== 'owner')
}
