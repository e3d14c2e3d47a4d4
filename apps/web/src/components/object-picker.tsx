'use client'

import type { ReactNode } from 'react'
import type { Picker } from '../lib/use-picker'
import { Button } from './button'
import { type Option, SelectField, TextField } from './field'
import { SearchFilter, SelectFilter } from './filter'

interface Named {
  name: string
}

interface ObjectPickerProps<T> {
  label: string
  picker: Picker<T>
  /** The id of the chosen object, or the value of one of `first`. */
  value: string
  onChange: (value: string) => void
  /** The name, unless given. */
  labelOf?: (item: T) => string
  /** Choices that are no objects, such as "none"; they are above the objects. */
  first?: Option[]
  /** The chosen object, where it was chosen before this picker was opened. */
  chosen?: Option | null | undefined
  hint?: ReactNode
  disabled?: boolean
}

/** A choice among objects. Where there are more than a list holds, a search and "Load more" reach all of them. */
export function ObjectPicker<T extends Named>({
  label,
  picker,
  value,
  onChange,
  hint,
  disabled,
  ...offer
}: ObjectPickerProps<T>) {
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <SelectField
        label={label}
        value={value}
        options={optionsOf(picker, value, offer)}
        onChange={onChange}
        hint={hint}
        disabled={disabled ?? false}
      />
      {needsSearch(picker) && (
        <div className="grid grid-cols-[1fr_auto] items-end gap-2">
          <TextField
            label={`Search ${picker.plural}`}
            value={picker.search}
            onChange={picker.onSearch}
            placeholder="Part of the name"
          />
          {picker.hasMore && (
            <Button busy={picker.isLoadingMore} onClick={picker.loadMore}>
              Load more
            </Button>
          )}
        </div>
      )}
    </div>
  )
}

/** The same above a list: no choice means "not filtered". */
export function ObjectFilter<T extends Named>({
  label,
  picker,
  value,
  onChange,
  ...offer
}: Omit<ObjectPickerProps<T>, 'value' | 'hint' | 'disabled' | 'first'> & { value: string | undefined }) {
  return (
    <>
      <SelectFilter label={label} value={value} options={optionsOf(picker, value ?? '', offer)} onChange={onChange} />
      {needsSearch(picker) && (
        <SearchFilter label={`Search ${picker.plural}`} value={picker.search} onChange={picker.onSearch} />
      )}
    </>
  )
}

const small = 'h-7 max-w-44 rounded-md border border-line-strong bg-surface px-1.5 text-ink text-sm hover:bg-hover'

/** The same in a row of a table: its label is for screen readers alone. */
export function ObjectSelect<T extends Named>({
  label,
  picker,
  value,
  onChange,
  ...offer
}: Omit<ObjectPickerProps<T>, 'hint' | 'disabled'>) {
  return (
    <span className="inline-flex flex-wrap items-center gap-1.5">
      <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value)} className={small}>
        {optionsOf(picker, value, offer).map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
      {needsSearch(picker) && (
        <input
          type="search"
          aria-label={`Search ${picker.plural}: ${label}`}
          placeholder={`Search ${picker.plural}`}
          value={picker.search}
          maxLength={64}
          onChange={(event) => picker.onSearch(event.target.value)}
          className={small}
        />
      )}
    </span>
  )
}

function needsSearch({ search, isLong }: Pick<Picker<unknown>, 'search' | 'isLong'>): boolean {
  return search !== '' || isLong
}

type Offer<T> = Pick<ObjectPickerProps<T>, 'labelOf' | 'first' | 'chosen'>

/** The fixed choices, the listed objects, and the chosen one where a search does not list it. */
function optionsOf<T extends Named>(
  picker: Picker<T>,
  value: string,
  { labelOf = ({ name }) => name, first = [], chosen }: Offer<T>,
): Option[] {
  const listed = picker.items.map((item) => ({ value: picker.idOf(item), label: labelOf(item) }))
  const options = [...first, ...listed]
  if (value === '' || options.some((option) => option.value === value)) return options
  const known = picker.itemOf(value)
  if (known) return [...options, { value, label: labelOf(known) }]
  return chosen?.value === value ? [...options, chosen] : options
}
