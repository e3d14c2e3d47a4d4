import { z } from 'zod'

/** A field that a list may be sorted by. */
export interface SortField {
  kind: 'text' | 'instant' | 'count'
  /** Where a row has it, e.g. `user.name`. */
  path: string
  mayBeNull: boolean
}

type SortOf<Name extends string> = Name | `-${Name}`

/**
 * The orders of a list: each by one field and then by id, from the smallest value, or with a hyphen from the largest.
 * Null counts as smaller than every value. A page of a long list is read from an index, so such a list is sorted only
 * by fields that have one with the id behind it, and by one field at a time. A list that is short in every organization
 * is sorted by any field.
 */
export interface ListSort<Name extends string = string> {
  input: z.ZodDefault<z.ZodEnum<{ [Key in SortOf<Name>]: Key }>>
  fields: Record<string, SortField>
  initial: string
  /** Where a row has its id. */
  idPath: string
}

export function listSort<Name extends string>(
  fields: Record<Name, SortField>,
  initial: SortOf<NoInfer<Name>>,
  idPath = 'id',
): ListSort<Name> {
  const choices = (Object.keys(fields) as Name[]).flatMap((name): SortOf<Name>[] => [name, `-${name}`])
  const input = z.enum(choices).default(initial as never)
  return { input: input as ListSort<Name>['input'], fields, initial, idPath }
}

export function text(path: string): SortField {
  return { kind: 'text', path, mayBeNull: false }
}

export function textOrNull(path: string): SortField {
  return { kind: 'text', path, mayBeNull: true }
}

export function instantOf(path: string): SortField {
  return { kind: 'instant', path, mayBeNull: false }
}

export function instantOrNull(path: string): SortField {
  return { kind: 'instant', path, mayBeNull: true }
}

/** A whole number that the database keeps as `bigint`. */
export function countOrNull(path: string): SortField {
  return { kind: 'count', path, mayBeNull: true }
}
