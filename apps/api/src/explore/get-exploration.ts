import { bootPhases } from '@bootfarm/proto/boot-phases'
import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { type AttributeName, attributeOf } from './attributes.ts'
import { cellsOf, durationEdges, figuresOf, grouped, quantileOf, stepOf } from './figures.ts'
import { nameValues } from './name-values.ts'
import { readPromotions } from './read-promotions.ts'
import { readSample, type Sample, type SampledBoot } from './read-sample.ts'
import { type ExploreView, type exploreInput, groupLines, groupsShown, type sampleView } from './schema.ts'
import { spanOf } from './span.ts'

/** Reads the heat map of a filter's boots, and their figures over time and by one attribute. */
export async function getExploration(
  context: ServiceContext,
  { by, since, until, ...filter }: z.output<typeof exploreInput>,
): Promise<ExploreView> {
  const span = spanOf({ since, until }, context.clock())
  const sample = await readSample(context, filter, span)
  const { boots } = sample
  const steps = stepsOf(span)
  const edges = durationEdges(boots.flatMap(({ durationUs }) => durationUs ?? []))
  const byStep = inSteps(boots, steps)
  return {
    since: span.since.toISOString(),
    until: span.until.toISOString(),
    sample: sampleViewOf(sample),
    phases: [...bootPhases],
    stepMs: steps.stepMs,
    steps: byStep.map((some, index) => ({
      at: new Date(steps.firstMs + index * steps.stepMs).toISOString(),
      ...figuresOf(some),
    })),
    durationEdgesUs: edges,
    cells: cellsOf(boots, { stepAt: steps.stepAt, edges }),
    total: figuresOf(boots),
    ...(by ? await groupsOf(context, { boots, by, steps }) : { groups: [], otherGroups: 0 }),
    promotions: await readPromotions(context, filter, span),
  }
}

export function sampleViewOf({ boots, share }: Sample): z.infer<typeof sampleView> {
  return { bootCount: boots.length, share, estimatedCount: Math.round(boots.length / share) }
}

interface Steps {
  stepMs: number
  firstMs: number
  count: number
  stepAt: (ms: number) => number
}

/** Steps begin at full hours or days of UTC, so that they do not move with the span. */
function stepsOf({ since, until }: { since: Date; until: Date }): Steps {
  const stepMs = stepOf(until.getTime() - since.getTime())
  const firstMs = Math.floor(since.getTime() / stepMs) * stepMs
  const stepAt = (ms: number) => Math.floor((ms - firstMs) / stepMs)
  return { stepMs, firstMs, count: stepAt(until.getTime() - 1) + 1, stepAt }
}

function inSteps(boots: SampledBoot[], { count, stepAt }: Steps): SampledBoot[][] {
  const byStep = Array.from({ length: count }, (): SampledBoot[] => [])
  for (const boot of boots) byStep[stepAt(boot.startedMs)]?.push(boot)
  return byStep
}

interface Grouping {
  boots: SampledBoot[]
  by: AttributeName
  steps: Steps
}

async function groupsOf(
  context: ServiceContext,
  { boots, by, steps }: Grouping,
): Promise<Pick<ExploreView, 'groups' | 'otherGroups'>> {
  const all = grouped(boots, attributeOf(by).valueOf)
  const shown = all.slice(0, groupsShown)
  const names = await nameValues(
    context,
    shown.map(([value]) => ({ attribute: by, value })),
  )
  return {
    groups: shown.map(([value, some], index) => ({
      value,
      label: names.get(`${by} ${value}`) ?? null,
      ...figuresOf(some),
      ...(index < groupLines ? linesOf(inSteps(some, steps)) : { p50ByStepUs: null, p95ByStepUs: null }),
    })),
    otherGroups: all.length - shown.length,
  }
}

function linesOf(byStep: SampledBoot[][]) {
  const sorted = byStep.map((boots) =>
    boots.flatMap(({ outcome, durationUs }) => (outcome === 'ready' ? (durationUs ?? []) : [])).sort((a, b) => a - b),
  )
  return {
    p50ByStepUs: sorted.map((durations) => quantileOf(durations, 0.5)),
    p95ByStepUs: sorted.map((durations) => quantileOf(durations, 0.95)),
  }
}
