import { z } from 'zod'
import type { RouterInputs } from '../../lib/trpc'
import { type BootFilters, bootFilterShape, bootListInput } from '../boots/boot-filters.ts'

export type CompareInput = Exclude<RouterInputs['explore']['compare'], void>

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
const filtersSchema = z.object(setShape)

/** @param filters as `useUrlFilters` reads them with `compareShape` */
export function setsOf(filters: Record<string, string | undefined>): BootSets {
  const [set, base]: Record<string, string | undefined>[] = [{}, {}]
  for (const [name, value] of Object.entries(filters))
    if (name.startsWith(basePrefix)) Object.assign(base ?? {}, { [name.slice(basePrefix.length)]: value })
    else Object.assign(set ?? {}, { [name]: value })
  return { set: filtersSchema.parse(set), base: filtersSchema.parse(base) }
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
