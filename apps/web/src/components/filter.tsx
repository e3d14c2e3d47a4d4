'use client'

import { type ReactNode, useEffect, useState } from 'react'
import { useFirstPaint } from '../lib/first-paint'
import { instantOfMinute, localMinute } from '../lib/format-time'
import { Button } from './button'
import { Icon } from './icon'

const field =
  'h-8 rounded-md border border-line-strong bg-surface text-ink text-sm hover:bg-hover max-w-full max-sm:w-full'
const searchDelayMs = 250

interface FilterBarProps {
  label?: string | undefined
  onClear?: (() => void) | undefined
  children: ReactNode
}

/** One row above a list; `onClear` is shown when a filter is set. */
export function FilterBar({ label = 'Filters', onClear, children }: FilterBarProps) {
  return (
    <search className="grid grid-cols-2 items-center gap-2 sm:flex sm:flex-wrap" aria-label={label}>
      {children}
      {onClear && (
        <Button look="bare" onClick={onClear} className="justify-self-start">
          <Icon name="close" size={12} /> Clear
        </Button>
      )}
    </search>
  )
}

interface SelectFilterProps {
  label: string
  value: string | undefined
  options: { value: string; label: string }[]
  /** What holds without a choice, if that is not everything. */
  first?: string
  onChange: (value: string) => void
}

/** The browser's own select: quick, typeable, right on phones. The first option means "not filtered". */
export function SelectFilter({ label, value, options, first, onChange }: SelectFilterProps) {
  return (
    <select
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => onChange(event.target.value)}
      className={`${field} px-2 ${value ? 'border-ink-faint font-medium' : ''}`}
    >
      <option value="">{first ?? `${label}: all`}</option>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  )
}

interface SearchFilterProps {
  label: string
  value: string | undefined
  onChange: (value: string) => void
}

/** Filters while the viewer types, a moment after the last key. */
export function SearchFilter({ label, value = '', onChange }: SearchFilterProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), searchDelayMs)
    return () => clearTimeout(timer)
  }, [text, value, onChange])
  return (
    <div className="relative col-span-2">
      <span className="pointer-events-none absolute top-2 left-2.5 text-ink-faint">
        <Icon name="search" />
      </span>
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={text}
        maxLength={64}
        onChange={(event) => setText(event.target.value)}
        className={`${field} w-full pr-2 pl-8 placeholder:text-ink-faint sm:w-64`}
      />
    </div>
  )
}

/** Filters that are needed less often; opens when one of them is set. Closed, they load nothing to choose from. */
export function MoreFilters({ isSet, children }: { isSet: boolean; children: ReactNode }) {
  const [isOpen, setOpen] = useState(isSet)
  useEffect(() => {
    if (isSet) setOpen(true)
  }, [isSet])
  return (
    <details
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
      className="col-span-2 sm:w-full"
    >
      <summary className="w-fit cursor-pointer rounded text-ink-soft text-sm">More filters</summary>
      {isOpen && <div className="mt-2 grid grid-cols-2 items-center gap-2 sm:flex sm:flex-wrap">{children}</div>}
    </details>
  )
}

interface InstantFilterProps {
  label: string
  /** ISO 8601. */
  value: string | undefined
  onChange: (value: string) => void
}

/** An instant in the viewer's zone. */
export function InstantFilter({ label, value, onChange }: InstantFilterProps) {
  const paint = useFirstPaint()
  const shown = value ? localMinute(new Date(value), paint?.timeZone) : ''
  const [text, setText] = useState(shown)
  useEffect(() => setText(shown), [shown])
  const change = (typed: string) => {
    setText(typed)
    const instant = typed === '' ? '' : instantOfMinute(typed)
    if (instant !== null) onChange(instant)
  }
  return (
    <label className="flex items-center gap-1.5 text-ink-soft text-sm max-sm:col-span-2">
      {label}
      <input
        type="datetime-local"
        value={text}
        max="9999-12-31T23:59"
        onChange={({ target }) => change(target.value)}
        className={`${field} px-2`}
      />
    </label>
  )
}
