import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { dayMs } from '../rules/utc-day.ts'
import { type AttributeName, attributeNames, attributeOf } from './attributes.ts'
import { sampleViewOf } from './get-exploration.ts'
import { nameValues } from './name-values.ts'
import { rankValues, type ValueCount } from './rank-attributes.ts'
import { readSample, type SampledBoot } from './read-sample.ts'
import { type DifferencesView, type differencesInput, rankedShown } from './schema.ts'
import { invalid, spanOf } from './span.ts'

type Input = z.output<typeof differencesInput>

/** A box of the heat map: boots by start and duration. */
interface Box {
  since: Date
  until: Date
  minUs: number
  maxUs: number
}

/** Ranks the values of attributes that are more frequent among the boots of a box than among the filter's others. */
export async function getDifferences(context: ServiceContext, input: Input): Promise<DifferencesView> {
  const { since, until, boxSince, boxUntil, boxDurationUsMin, boxDurationUsMax, ...filter } = input
  const span = spanOf({ since, until }, context.clock())
  const box = boxOf(input)
  // The box is read apart: it may have too few boots in the sample of all.
  const inside = await readSample(
    context,
    {
      ...filter,
      durationUsMin: Math.max(box.minUs, filter.durationUsMin ?? 0),
      durationUsMax: Math.min(box.maxUs, filter.durationUsMax ?? box.maxUs),
    },
    { since: latest(box.since, span.since), until: earliest(box.until, span.until) },
  )
  const all = await readSample(context, filter, span)
  const rest = { ...all, boots: all.boots.filter((boot) => boot.durationUs !== null && !isIn(boot, box)) }
  const counts = attributesFor(box).flatMap((attribute) => countValues(attribute, inside.boots, rest.boots))
  const sizes = { inside: inside.boots.length, outside: rest.boots.length }
  const { values, comparedCount } = rankValues(counts, sizes)
  const ranked = values.slice(0, rankedShown)
  const names = await nameValues(context, ranked)
  return {
    inside: sampleViewOf(inside),
    outside: sampleViewOf(rest),
    comparedCount,
    values: ranked.map(({ attribute, value, inside: insideCount, outside: outsideCount, ...ratio }) => ({
      attribute,
      value,
      label: names.get(`${attribute} ${value}`) ?? null,
      insideCount,
      outsideCount,
      ...ratio,
    })),
  }
}

function boxOf({ boxSince, boxUntil, boxDurationUsMin = 0, boxDurationUsMax = Number.MAX_SAFE_INTEGER }: Input): Box {
  const box = { since: new Date(boxSince), until: new Date(boxUntil), minUs: boxDurationUsMin, maxUs: boxDurationUsMax }
  if (box.since >= box.until) throw invalid('boxSince', 'The box ends before it begins.')
  if (box.minUs > box.maxUs) throw invalid('boxDurationUsMin', 'The shortest duration of the box exceeds its longest.')
  return box
}

/** The boots of a box of less than a day have its hours: that says nothing. */
function attributesFor({ since, until }: Box): AttributeName[] {
  const isShort = until.getTime() - since.getTime() < dayMs
  return attributeNames.filter((name) => name !== 'hour' || !isShort)
}

function isIn({ startedMs, durationUs }: SampledBoot, { since, until, minUs, maxUs }: Box): boolean {
  if (startedMs < since.getTime() || startedMs >= until.getTime()) return false
  return durationUs !== null && durationUs >= minUs && durationUs <= maxUs
}

function countValues(attribute: AttributeName, inside: SampledBoot[], outside: SampledBoot[]) {
  const attributed = attributeOf(attribute)
  const counts = new Map<string | null, ValueCount & { attribute: AttributeName }>()
  for (const side of ['inside', 'outside'] as const) {
    for (const boot of side === 'inside' ? inside : outside) {
      const value = attributed.valueOf(boot)
      const count = counts.get(value) ?? { attribute, value, inside: 0, outside: 0 }
      count[side] += 1
      counts.set(value, count)
    }
  }
  return [...counts.values()]
}

const latest = (a: Date, b: Date) => (a > b ? a : b)
const earliest = (a: Date, b: Date) => (a < b ? a : b)
