'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { Icon } from '../../components/icon'
import { useTRPC } from '../../lib/trpc'

/** For who runs the installation; nobody else sees it. */
export function PlatformLink() {
  const { data } = useQuery(useTRPC().session.access.queryOptions())
  if (!data?.isPlatformOperator) return null
  return (
    <Link
      href="/platform"
      className="flex h-8 items-center gap-2.5 rounded-md px-2.5 text-ink-soft text-sm hover:bg-hover hover:text-ink max-md:h-10"
    >
      <Icon name="platform" /> Platform
    </Link>
  )
}
