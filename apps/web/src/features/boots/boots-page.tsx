'use client'

import { useMemo } from 'react'
import { FilterBar, SelectFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { EmptyState, Page, PageHeader } from '../../components/page'
import { useFirstPaint } from '../../lib/first-paint'
import { usePicker } from '../../lib/use-picker'
import { useUrlFilters } from '../../lib/use-url-filters'
import { bootFilterShape, bootListInput, originOptions, periodOptions } from './boot-filters'
import { BootList } from './boot-list'

const outcomeOptions = [
  { value: 'booting', label: 'Booting' },
  { value: 'ready', label: 'Ready' },
  { value: 'failed', label: 'Failed' },
  { value: 'silent', label: 'Timed out' },
  { value: 'superseded', label: 'Restarted' },
  { value: 'local_disk', label: 'Booted from local disk' },
]

export function BootsPage() {
  const { filters, bind, clearFilters, filtered } = useUrlFilters(bootFilterShape)
  const paint = useFirstPaint()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list of the first paint stays until a filter changes
  const input = useMemo(() => bootListInput(filters, paint ? new Date(paint.now) : new Date()), [filters])
  return (
    <Page>
      <PageHeader title="Boots" summary="Every boot of every device." />
      <FilterBar onClear={filtered ? clearFilters : undefined}>
        <SelectFilter label="Outcome" options={outcomeOptions} {...bind('outcome')} />
        <DeviceFilter {...bind('device')} />
        <SelectFilter label="Period" options={periodOptions} {...bind('period')} />
        <SelectFilter label="Origin" options={originOptions} {...bind('origin')} />
      </FilterBar>
      <div className="rounded-lg border border-line bg-surface">
        <BootList input={input} empty={<NoBoots filtered={filtered} />} />
      </div>
    </Page>
  )
}

function DeviceFilter({ value, onChange }: { value: string | undefined; onChange: (value: string) => void }) {
  return (
    <ObjectFilter
      label="Device"
      picker={usePicker('device', {})}
      value={value}
      chosen={value ? { value, label: 'Selected device' } : null}
      onChange={onChange}
    />
  )
}

function NoBoots({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <EmptyState title="No boots match these filters." text="Clear a filter or choose a longer period." />
  ) : (
    <EmptyState
      title="No boots yet."
      text="A boot appears here when a device at one of your sites requests a boot program from an edge."
    />
  )
}
