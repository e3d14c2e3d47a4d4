'use client'

import type { ReactNode } from 'react'
import { FilterBar, InstantFilter, MoreFilters, SearchFilter, SelectFilter } from '../../components/filter'
import { ObjectFilter } from '../../components/object-picker'
import { usePicker } from '../../lib/use-picker'
import {
  type BootFilters,
  causeOptions,
  durationText,
  firmwareOptions,
  hourOptions,
  memoryOptions,
  originOptions,
  outcomeOptions,
  periodOptions,
  processorOptions,
  readsOptions,
  slowerOptions,
  storageOptions,
} from './boot-filters'
import { VersionFilter } from './version-filter'

/** What `useUrlFilters` gives for a shape that has these filters. */
interface BootFilterBarProps {
  filters: BootFilters
  filtered: boolean
  bind: (name: keyof BootFilters & string) => { value: string | undefined; onChange: (value: string) => void }
  setFilters: (values: { durationMin: string; durationMax: string }) => void
  clearFilters: () => void
  /** Of several on a page. */
  label?: string
  /** What holds without a period, if that is not all of time. */
  firstPeriod?: string
  /** Stands first. */
  children?: ReactNode
}

/** The filters of lists of boots, and of pages that sum them up. */
export function BootFilterBar({ filters, bind, clearFilters, filtered, ...props }: BootFilterBarProps) {
  const { vdisk, processors, memory } = filters
  const range = durationText(filters)
  return (
    <FilterBar label={props.label} onClear={filtered ? clearFilters : undefined}>
      {props.children}
      <SearchFilter label="Search name or MAC" {...bind('search')} />
      <SelectFilter label="Outcome" options={outcomeOptions} {...bind('outcome')} />
      <Chosen noun="site" label="Site" {...bind('site')} />
      <Chosen noun="device" label="Device" {...bind('device')} />
      <SelectFilter
        label="Period"
        options={periodOptions}
        {...(props.firstPeriod && { first: props.firstPeriod })}
        {...bind('period')}
      />
      {range ? (
        <SelectFilter
          label="Duration"
          options={[{ value: 'range', label: range }]}
          value="range"
          onChange={() => props.setFilters({ durationMin: '', durationMax: '' })}
        />
      ) : (
        <SelectFilter label="Duration" options={slowerOptions} {...bind('slower')} />
      )}
      <SelectFilter label="Origin" options={originOptions} {...bind('origin')} />
      <MoreFilters isSet={moreNames.some((name) => filters[name])}>
        <SelectFilter label="Cause" options={causeOptions} {...bind('cause')} />
        <Chosen noun="collection" label="Collection" {...bind('collection')} />
        <Chosen noun="edge" label="Edge" {...bind('edge')} />
        <Chosen noun="vdisk" label="vDisk" {...bind('vdisk')} />
        <VersionFilter vdiskId={vdisk} {...bind('version')} />
        <SelectFilter label="Firmware" options={firmwareOptions} {...bind('firmware')} />
        <SelectFilter label="Reads" options={readsOptions} {...bind('reads')} />
        <SelectFilter label="Hour" options={hourOptions} {...bind('hour')} />
        <SelectFilter label="Processors" options={processorOptions(processors)} {...bind('processors')} />
        <SelectFilter label="Memory" options={memoryOptions(memory)} {...bind('memory')} />
        <SelectFilter label="Edge’s storage" options={storageOptions} {...bind('storage')} />
        <ReportedFilter label="Model" {...bind('model')} />
        <ReportedFilter label="Network card" {...bind('card')} />
        <ReportedFilter label="Edge release" {...bind('release')} />
        <ReportedFilter label="Segment" {...bind('segment')} />
        <Chosen noun="farm" label="Farm" {...bind('farm')} />
        <InstantFilter label="From" {...bind('since')} />
        <InstantFilter label="Until" {...bind('until')} />
      </MoreFilters>
    </FilterBar>
  )
}

/** Closed, these would not be seen. */
const moreNames: (keyof BootFilters)[] = [
  'cause',
  'collection',
  'edge',
  'vdisk',
  'version',
  'since',
  'until',
  'farm',
  'firmware',
  'reads',
  'hour',
  'processors',
  'memory',
  'storage',
  'model',
  'card',
  'release',
  'segment',
]

interface ReportedFilterProps {
  label: string
  value: string | undefined
  onChange: (value: string) => void
}

/** A text that devices or edges report: "Only" beside a group of the page "Explore" sets it, and here it is cleared. */
function ReportedFilter({ label, value, onChange }: ReportedFilterProps) {
  if (!value) return null
  return <SelectFilter label={label} options={[{ value, label: value }]} value={value} onChange={onChange} />
}

interface ChosenProps {
  noun: 'farm' | 'site' | 'device' | 'collection' | 'edge' | 'vdisk'
  label: string
  value: string | undefined
  onChange: (value: string) => void
}

function Chosen({ noun, label, value, onChange }: ChosenProps) {
  return (
    <ObjectFilter
      label={label}
      picker={usePicker(noun, {})}
      value={value}
      chosen={value ? { value, label: `Selected ${label === 'vDisk' ? label : label.toLowerCase()}` } : null}
      onChange={onChange}
    />
  )
}
