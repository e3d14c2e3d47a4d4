'use client'

import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '../../lib/trpc'

const roles = ['viewer', 'operator', 'admin', 'owner'] as const

/**
 * Whether what the role may do is shown. It decides nothing: the API refuses what a role may not. False until the session is
 * known.
 */
export function useMay(minimum: (typeof roles)[number]): boolean {
  const { data } = useQuery(useTRPC().session.me.queryOptions())
  return data !== undefined && roles.indexOf(data.role) >= roles.indexOf(minimum)
}
