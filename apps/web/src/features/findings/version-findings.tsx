'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { useTRPC } from '../../lib/trpc'

const shown = 3

/** Findings about a version of a vDisk, each a line; nothing where there are none. */
export function VersionFindings({ vdiskId, versionId }: { vdiskId: string; versionId: string }) {
  // One request for all versions of the vDisk: each line picks its own.
  const { data } = useQuery(useTRPC().finding.list.queryOptions({ vdiskId, state: 'current', limit: 100 }))
  const findings = data?.items.filter(({ factor, value }) => factor === 'version' && value === versionId) ?? []
  return findings.slice(0, shown).map(({ id, sentence, site }) => (
    <p key={id} className="text-failed">
      <Link prefetch={false} href={`/findings/${id}`} className="underline underline-offset-4">
        {sentence}
      </Link>{' '}
      <span className="text-ink-soft">At {site.name}.</span>
    </p>
  ))
}
