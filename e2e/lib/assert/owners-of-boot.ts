import { tracePath } from '@bootfarm/proto/boot-path'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect } from 'vitest'

const namedShareMin = 0.99
const inferredShareMax = 0.15
/** A longer part of a boot has an owner that somebody saw or reported. */
const unexplainedUsMax = 50_000

/** In shares of a boot, and µs. */
export interface OwnersOfBoot {
  inferredShare: number
  longestUnexplainedUs: number
}

/** Every millisecond of a ready boot has an owner, and most of them were seen or reported. */
export function expectOwners(report: BootReport): OwnersOfBoot {
  const path = tracePath(tracedBoot(report))
  const lines = path.segments.map(
    ({ fromUs, toUs, owner, source }) => `${fromUs} to ${toUs} µs: ${owner.title} (${source})`,
  )
  console.log(lines.join('\n'))
  expect(1 - path.unattributedUs / path.totalUs, 'named share').toBeGreaterThanOrEqual(namedShareMin)
  const inferredShare = path.inferredUs / path.totalUs
  expect(inferredShare, 'inferred share').toBeLessThanOrEqual(inferredShareMax)
  const unexplained = path.segments.filter(
    ({ owner, source }) => owner.kind === 'unattributed' || source === 'inferred',
  )
  const longestUnexplainedUs = Math.max(0, ...unexplained.map(({ fromUs, toUs }) => toUs - fromUs))
  expect(longestUnexplainedUs, 'longest part that nobody saw or reported').toBeLessThanOrEqual(unexplainedUsMax)
  return { inferredShare, longestUnexplainedUs }
}

/** As the API shows it. */
function tracedBoot(report: BootReport): Parameters<typeof tracePath>[0] {
  const {
    phases,
    guest,
    loaderSteps = [],
    transfers = [],
    offers = [],
    routerWait = null,
    handOver = null,
    menuEntry = null,
    bootCommandUs = null,
  } = report
  const ends = phases.map(({ startUs, durationUs = 0 }) => startUs + durationUs)
  return {
    outcome: report.outcome?.kind ?? null,
    totalUs: Math.max(0, ...ends),
    phases: phases.map((phase) => ({ ...phase, durationUs: phase.durationUs ?? null, gaps: phase.gaps ?? [] })),
    guest: guest
      ? {
          kernelStartUs: guest.kernelStartUs,
          steps: guest.steps.map((step) => ({ ...step, startUs: guest.kernelStartUs + step.startUs })),
        }
      : null,
    transfers,
    loaderSteps: loaderSteps.map((step) => ({ ...step, durationUs: step.durationUs ?? null })),
    offers,
    routerWait,
    handOver,
    menuEntry,
    bootCommandUs,
    readTimes: null,
  }
}
