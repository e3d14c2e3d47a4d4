'use client'

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { inSentence } from '../../lib/in-sentence'
import { useTRPCClient } from '../../lib/trpc'
import type { Option } from './explain-choices'

interface OptionFieldProps {
  label: string
  /** What is looked for, for the cache. */
  queryKey: string
  value: string | undefined
  load: (
    client: ReturnType<typeof useTRPCClient>,
    search: string,
  ) => Promise<{ items: Option[]; nextCursor: string | null }> | { items: Option[]; nextCursor: string | null }
  onChange: (id: string) => void
}

/** A choice among things with names; where there are more than a list holds, by a part of the name. */
export function OptionField({ label, queryKey, value, load, onChange }: OptionFieldProps) {
  const client = useTRPCClient()
  const [search, setSearch] = useState('')
  const { data } = useQuery({
    queryKey: ['options', queryKey, search],
    queryFn: async () => load(client, search),
  })
  const options = data?.items ?? []
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <SelectField
        label={label}
        value={options.some(({ id }) => id === value) ? (value ?? '') : ''}
        options={[{ value: '', label: 'Select …' }, ...options.map(({ id, name }) => ({ value: id, label: name }))]}
        onChange={onChange}
      />
      {(search !== '' || data?.nextCursor) && (
        <TextField
          label={`Search: ${inSentence(label)}`}
          value={search}
          onChange={setSearch}
          hint="There are more results. Search by part of the name."
        />
      )}
    </div>
  )
}
