import type { z } from 'zod'
import { readFilters } from '../../lib/read-filters.ts'
import type { RouterInputs } from '../../lib/trpc'
import { type BootFilters, bootFilterShape, bootListInput } from '../boots/boot-filters.ts'

type CompareInput = Exclude<RouterInputs['explore']['compare'], void>

/** The filters of two sets of boots; those of the baseline have the same names behind this. */
const basePrefix = 'base-'

export interface BootSets {
  set: BootFilters
  base: BootFilters
}

const { sort: _sort, ...setShape } = bootFilterShape

/** A comparison is its address. */
export const compareShape: Record<string, z.ZodType<string | undefined>> = {
  ...setShape,
  ...Object.fromEntries(Object.entries(setShape).map(([name, schema]) => [`${basePrefix}${name}`, schema])),
}

/** @param filters as `useUrlFilters` reads them with `compareShape` */
export function setsOf(filters: Record<string, string | undefined>): BootSets {
  const of = (side: keyof BootSets) =>
    readFilters(setShape, { get: (name) => filters[parameterOf(side, name)] ?? null })
  return { set: of('set'), base: of('base') }
}

/** The parameters of the address for filters of one set. */
export function parametersOf(side: keyof BootSets, filters: BootFilters): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(filters).map(([name, value]) => [parameterOf(side, name), value]))
}

export function parameterOf(side: keyof BootSets, name: string): string {
  return side === 'base' ? `${basePrefix}${name}` : name
}

export function compareHref({ set, base }: BootSets): string {
  const given = Object.entries({ ...parametersOf('set', set), ...parametersOf('base', base) })
  const known = given.filter((entry): entry is [string, string] => Boolean(entry[1]))
  return `/explore/compare?${new URLSearchParams(known)}`
}

/** @param now as of `bootListInput` */
export function compareInput({ set, base }: BootSets, now: Date): CompareInput {
  const ofBase = Object.entries(bootListInput(base, now)).map(([name, value]) => [
    `base${name[0]?.toUpperCase()}${name.slice(1)}`,
    value,
  ])
  return { ...bootListInput(set, now), ...Object.fromEntries(ofBase) }
}
