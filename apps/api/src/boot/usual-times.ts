import { bootPhases } from '@bootfarm/proto/boot-phases'
import { z } from 'zod'
import { count } from '../rules/scalars.ts'

/** Fewer boots say nothing about what is usual. */
const bootsMin = 5

const spread = z.object({
  p10Us: count.describe('One in ten boots took less, in microseconds.'),
  p50Us: count.describe('The median, in microseconds.'),
  p90Us: count.describe('One in ten boots took longer, in microseconds.'),
})

const usualTimes = z.object({
  bootCount: count.describe('Earlier boots that became ready, at most the newest 50.'),
  total: spread
    .nullable()
    .describe(`From the first packet until ready; null if there are fewer than ${bootsMin} boots.`),
  phases: z
    .array(spread.extend({ name: z.enum(bootPhases) }))
    .describe('In the order of the chain; only phases that enough of the boots have.'),
})
export type UsualTimes = z.infer<typeof usualTimes>

export const bootUsual = z
  .object({
    device: usualTimes.nullable().describe('Earlier boots of this device; null if the device is not registered.'),
    version: usualTimes
      .nullable()
      .describe('Earlier boots of this version of the vDisk by any device; null if the edge named none.'),
  })
  .meta({ id: 'BootUsual' })
export type BootUsual = z.infer<typeof bootUsual>

export interface TimedBoot {
  totalUs: number
  phases: { name: string; durationUs?: number | undefined }[]
}

/** What is usual for these boots, each of which became ready. */
export function usualTimesOf(boots: TimedBoot[]): UsualTimes {
  const phases = bootPhases
    .filter((name) => name !== 'ready')
    .flatMap((name) => {
      const lengths = boots.flatMap((boot) => {
        const durationUs = boot.phases.find((phase) => phase.name === name)?.durationUs
        return durationUs === undefined ? [] : [durationUs]
      })
      const found = spreadOf(lengths)
      return found ? [Object.assign(found, { name })] : []
    })
  return { bootCount: boots.length, total: spreadOf(boots.map(({ totalUs }) => totalUs)), phases }
}

function spreadOf(lengths: number[]): z.infer<typeof spread> | null {
  if (lengths.length < bootsMin) return null
  const sorted = lengths.toSorted((a, b) => a - b)
  return { p10Us: quantile(sorted, 0.1), p50Us: quantile(sorted, 0.5), p90Us: quantile(sorted, 0.9) }
}

/** Interpolated between neighbours. */
function quantile(sorted: number[], part: number): number {
  const place = (sorted.length - 1) * part
  const below = sorted[Math.floor(place)] ?? 0
  const above = sorted[Math.ceil(place)] ?? below
  return Math.round(below + (above - below) * (place - Math.floor(place)))
}
