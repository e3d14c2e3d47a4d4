import { bootPhases } from '@bootfarm/proto/boot-phases'
import type { FilesRead } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { compareFiles } from './compare-files.ts'
import {
  type ComparisonView,
  comparedFilesMax,
  type comparisonInput,
  fileListsMax,
  setsOf,
} from './comparison-schema.ts'
import { binOf, durationEdges, figuresOf, phaseTimes } from './figures.ts'
import { sampleViewOf } from './get-exploration.ts'
import { readSample, type Sample, type SampledBoot } from './read-sample.ts'
import type { filters } from './schema.ts'
import { medianDifference, medianOf, shareDifference } from './set-differences.ts'
import { spanOf } from './span.ts'

type FileLists = FilesRead['files'][]

interface ComparedSet {
  sample: Sample
  since: Date
  until: Date
  ready: SampledBoot[]
  fileLists: FileLists
}

/** Compares two sets of boots: phases, failures, distributions, and the files that they wait for. */
export async function getComparison(
  context: ServiceContext,
  input: z.output<typeof comparisonInput>,
): Promise<ComparisonView> {
  const filtersOfSets = setsOf(input)
  const base = await readSet(context, filtersOfSets.base)
  const set = await readSet(context, filtersOfSets.set)
  const edges = durationEdges([...base.ready, ...set.ready].flatMap(({ durationUs }) => durationUs ?? []))
  const phases = phaseNames.flatMap((phase, index) => {
    const times = [base, set].map(({ ready }) => ready.map((boot) => timesOf(boot)[index] ?? 0).sort((a, b) => a - b))
    const [first = [], second = []] = times
    const isAnywhere = [first, second].some((some) => (some.at(-1) ?? 0) > 0)
    return isAnywhere || phase === 'total' ? [{ phase, first, second }] : []
  })
  // The failures are judged with the phases.
  const comparedCount = phases.length + 1
  return {
    base: setViewOf(base, edges),
    set: setViewOf(set, edges),
    phases: phases.map(({ phase, first, second }) => ({
      phase,
      baseMedianUs: medianOf(first),
      setMedianUs: medianOf(second),
      difference: medianDifference(first, second, { comparedCount }),
    })),
    failures: shareDifference(failedPart(base), failedPart(set), { comparedCount }),
    durationEdgesUs: edges,
    files: compareFiles(base.fileLists, set.fileLists).slice(0, comparedFilesMax),
  }
}

const phaseNames = [...bootPhases, 'other', 'total'] as const

function timesOf(boot: SampledBoot): number[] {
  return [...phaseTimes(boot), boot.durationUs ?? 0]
}

async function readSet(
  context: ServiceContext,
  { since, until, ...filter }: z.output<typeof filters>,
): Promise<ComparedSet> {
  const span = spanOf({ since, until }, context.clock())
  const sample = await readSample(context, filter, span)
  const ready = sample.boots.filter(({ outcome }) => outcome === 'ready')
  return { ...span, sample, ready, fileLists: await readFileLists(context, ready) }
}

/** Of some of the boots: their ids are random, and so is the choice. */
async function readFileLists({ db, actor }: ServiceContext, boots: SampledBoot[]): Promise<FileLists> {
  const ids = boots.map(({ id }) => id)
  // Only `keepFilesRead` writes these, from a report that zod validated.
  const rows = await db.$queryRaw<{ files: FilesRead['files'] }[]>`
    select report -> 'files' as files from boot_files_read
    where organization_id = ${actor.organizationId}::uuid and boot_id = any(${ids}::uuid[])
    order by boot_id limit ${fileListsMax}`
  return rows.map(({ files }) => files)
}

function setViewOf({ sample, since, until, ready, fileLists }: ComparedSet, edges: number[]): ComparisonView['set'] {
  const durationCounts = edges.map(() => 0)
  for (const { durationUs } of ready) {
    const bin = binOf(edges, durationUs ?? 0)
    durationCounts[bin] = (durationCounts[bin] ?? 0) + 1
  }
  return {
    since: since.toISOString(),
    until: until.toISOString(),
    sample: sampleViewOf(sample),
    figures: figuresOf(sample.boots),
    durationCounts,
    fileLists: fileLists.length,
  }
}

function failedPart({ sample }: ComparedSet) {
  const { readyCount, failedCount } = figuresOf(sample.boots)
  return { count: failedCount, of: readyCount + failedCount }
}
