'use client'

import { useQuery } from '@tanstack/react-query'
import { SelectFilter } from '../../components/filter'
import { useTRPC } from '../../lib/trpc'

interface VersionFilterProps {
  /** The chosen vDisk: without one there is no choice of versions. */
  vdiskId: string | undefined
  value: string | undefined
  onChange: (value: string) => void
}

/** A version of the chosen vDisk, or the one that a link has chosen. */
export function VersionFilter({ vdiskId, value, onChange }: VersionFilterProps) {
  const trpc = useTRPC()
  const vdisk = useQuery(trpc.vdisk.get.queryOptions({ vdiskId: vdiskId ?? '' }, { enabled: vdiskId !== undefined }))
  const versions = vdisk.data?.versions ?? []
  const options = versions.map(({ id, number }) => ({ value: id, label: `Version ${number}` }))
  if (value && !options.some((option) => option.value === value)) options.push({ value, label: 'Selected version' })
  if (options.length === 0) return null
  return <SelectFilter label="Version" options={options} value={value} onChange={onChange} />
}
