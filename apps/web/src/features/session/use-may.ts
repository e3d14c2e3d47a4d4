'use client'

import type { RouterOutputs } from '@bootfarm/api/router'
import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '../../lib/trpc'

type Grant = RouterOutputs['session']['me']['grants'][number]
export type Permission = Grant['permissions'][number]

/** The place of something; absent fields are above it. */
interface Place {
  farmId?: string | null
  siteId?: string | null
  collectionId?: string | null
}

/** The place of a device, as its own answers name it. */
export function placeOfDevice({ farmId, siteId, collectionId }: Required<Place>): Place {
  return { farmId, siteId, collectionId }
}

/**
 * Returns whether elements that need this permission are shown: at `place`, or anywhere without a place. It enforces
 * nothing: the API refuses what a role may not do. False until the session is known.
 */
export function useMay(permission: Permission, place?: Place): boolean {
  const { data } = useQuery(useTRPC().session.me.queryOptions())
  return data?.grants.some((grant) => allows(grant, permission, place)) ?? false
}

function allows(grant: Grant, permission: Permission, place: Place | undefined): boolean {
  if (!grant.permissions.includes(permission)) return false
  if (!place) return true
  // A place that leaves a level out may still be within the grant: the API knows.
  return (['farmId', 'siteId', 'collectionId'] as const).every(
    (level) => grant[level] === null || place[level] === undefined || grant[level] === place[level],
  )
}
