import { z } from 'zod'
import type { RouterInputs } from '../../lib/trpc'
import { type BootFilters, bootFilterShape, bootListInput } from '../boots/boot-filters.ts'

export type ExploreInput = Exclude<RouterInputs['explore']['get'], void>

const groupings = [
  'version',
  'site',
  'collection',
  'edge',
  'device',
  'firmware',
  'model',
  'processors',
  'memory',
  'card',
  'storage',
  'release',
  'segment',
  'reads',
  'outcome',
  'cause',
  'hour',
] as const

/** A view is its address: a link and a reload show the same. */
export const exploreShape = {
  ...bootFilterShape,
  by: z.enum(groupings).optional(),
  /** A box of the heat map: ms since 1970 and µs, from and until of each; no last number: however long. */
  box: z
    .string()
    .regex(/^\d{1,14}-\d{1,14}-\d{1,14}-(\d{1,14})?$/)
    .optional(),
}
export type ExploreFilters = { [Name in keyof typeof exploreShape]?: z.infer<(typeof exploreShape)[Name]> }

/** Boots that started within a time and took within a duration. */
export interface Box {
  sinceMs: number
  untilMs: number
  minUs: number
  /** As long or shorter; null: however long. */
  maxUs: number | null
}

export function textOfBox({ sinceMs, untilMs, minUs, maxUs }: Box): string {
  return `${sinceMs}-${untilMs}-${minUs}-${maxUs ?? ''}`
}

export function boxOf(text: string | undefined): Box | null {
  if (text === undefined) return null
  const [since = '', until = '', min = '', max = ''] = text.split('-')
  return { sinceMs: Number(since), untilMs: Number(until), minUs: Number(min), maxUs: max === '' ? null : Number(max) }
}

/** @param now as of `bootListInput` */
export function exploreInput({ by, box: _box, sort: _sort, ...filters }: ExploreFilters, now: Date): ExploreInput {
  return { ...bootListInput(filters, now), ...(by && { by }) }
}

export function differencesInput(input: ExploreInput, box: Box): RouterInputs['explore']['differences'] {
  const { by: _by, ...filters } = input
  return {
    ...filters,
    boxSince: new Date(box.sinceMs).toISOString(),
    boxUntil: new Date(box.untilMs).toISOString(),
    boxDurationUsMin: box.minUs,
    ...(box.maxUs !== null && { boxDurationUsMax: box.maxUs }),
  }
}

interface Span {
  since: string
  until: string
}

/** The list of the boots behind a number. @param more narrows the filters of the page */
export function bootsHref(filters: ExploreFilters, { since, until }: Span, more: BootFilters = {}): string {
  const { by: _by, box: _box, period: _period, sort: _sort, slower, ...others } = filters
  const isTimed = more.durationMin !== undefined || more.durationMax !== undefined
  const given = { ...others, ...(slower && !isTimed && { slower }), since, until, ...more }
  return `/boots?${new URLSearchParams(Object.entries(given).filter((entry): entry is [string, string] => Boolean(entry[1])))}`
}

/** The filters of a box, within those of the page. */
export function filtersOfBox(box: Box, filters: ExploreFilters, span: Span): BootFilters {
  const least = Math.max(box.minUs, Number(filters.durationMin ?? 0))
  const most = Math.min(box.maxUs ?? Number.POSITIVE_INFINITY, Number(filters.durationMax ?? Number.POSITIVE_INFINITY))
  return {
    since: new Date(Math.max(box.sinceMs, Date.parse(span.since))).toISOString(),
    until: new Date(Math.min(box.untilMs, Date.parse(span.until))).toISOString(),
    durationMin: String(least),
    ...(Number.isFinite(most) && { durationMax: String(most) }),
  }
}
