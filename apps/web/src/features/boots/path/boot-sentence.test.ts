import { tracePath } from '@bootfarm/proto/boot-path'
import { expect, test } from 'vitest'
import { bootSentence, slowestPhase } from './boot-sentence.ts'
import type { Baseline } from './usual.ts'

const second = 1_000_000
const counts = { retries: 0, missingFragments: 0, reads: 0, bytesOut: 0, gaps: [] }
const boot = {
  outcome: 'ready' as const,
  totalUs: 38.5 * second,
  phases: [
    { name: 'dhcp' as const, startUs: 0, durationUs: 0.5 * second, source: 'observed' as const, ...counts },
    {
      name: 'breather' as const,
      startUs: 0.5 * second,
      durationUs: 18 * second,
      source: 'inferred' as const,
      ...counts,
    },
    {
      name: 'stage2' as const,
      startUs: 18.5 * second,
      durationUs: 20 * second,
      source: 'observed' as const,
      ...counts,
    },
  ],
  guest: null,
  offers: [],
  loaderSteps: [],
  bootCommandUs: null,
  transfers: [],
  routerWait: null,
  handOver: null,
  menuEntry: null,
  readTimes: null,
}
const path = tracePath(boot)

const spread = (us: number) => ({ p10Us: 0.9 * us, p50Us: us, p90Us: 1.1 * us })
const baseline = (totalUs: number, breatherUs: number): Baseline => ({
  of: 'device',
  times: {
    bootCount: 20,
    total: spread(totalUs),
    phases: [Object.assign(spread(breatherUs), { name: 'breather' as const })],
  },
})
const told = (...input: Parameters<typeof bootSentence>) => {
  const found = bootSentence(...input)
  return found && { sentence: found.sentence.replaceAll('\u00a0', ' '), help: found.help }
}

test('a slow boot has its difference from what is usual, and the phases that are the reason', () => {
  expect(told(boot, path, baseline(8 * second, 3 * second))).toEqual({
    sentence: 'Ready in 38.5 s, 30.5 s longer than usual (7.20 s to 8.80 s for this device): Kernel start +15.0 s.',
    help: expect.stringMatching(/^Kernel and initramfs start: Prepare the image/),
  })
})

test('an ordinary boot names its largest part, and one without earlier boots says so', () => {
  expect(told(boot, path, baseline(38 * second, 18 * second))).toEqual({
    sentence:
      'Ready in 38.5 s, as usual (34.2 s to 41.8 s for this device); 20.0 s (51.9 %) belong to “OS start from the streamed disk”.',
    help: expect.stringMatching(/^Prepare the image/),
  })
  expect(told(boot, path, null)?.sentence).toMatch(/^Ready in 38.5 s, with too few earlier boots to compare with; /)
  expect(told(boot, path, baseline(60 * second, 18 * second))?.sentence).toMatch(
    /^Ready in 38.5 s, 21.5 s shorter than usual \(54.0 s to 1 min 6 s for this device\); /,
  )
})

test('a boot that did not get ready is compared with none, and one without time says nothing', () => {
  const failed = { ...boot, outcome: 'failed' as const }
  expect(told(failed, path, baseline(8 * second, 18 * second))?.sentence).toMatch(/^Failed after 38.5 s; 20.0 s /)
  expect(told({ ...boot, outcome: null }, path, null)?.sentence).toMatch(/^Booting for 38.5 s; /)
  expect(bootSentence(boot, tracePath({ ...boot, totalUs: 0, phases: [] }), null)).toBe(null)
})

test('a part between the phases is named if it is larger than what a phase took more than usual', () => {
  const waiting = {
    ...boot,
    routerWait: { atUs: 0.5 * second, durationUs: 17 * second, solicitations: 4 },
    phases: boot.phases.map((phase) =>
      phase.name === 'breather' ? { ...phase, startUs: 17.5 * second, durationUs: second } : phase,
    ),
  }
  const usual = baseline(8 * second, 0.5 * second)
  const short = { ...waiting, totalUs: 20 * second, phases: waiting.phases.slice(0, 2) }
  expect(told(short, tracePath(short), usual)).toMatchObject({
    sentence: expect.stringMatching(/; 17\.0 s \(85\.0 %\) belong to “iPXE: search for an IPv6 router”\.$/),
    help: expect.stringMatching(/^An edge on this segment ends it/),
  })
})

test('only a phase beyond its range is unusual', () => {
  expect(slowestPhase(boot, baseline(8 * second, 17 * second))).toBe(null)
  expect(slowestPhase(boot, baseline(8 * second, 16 * second))).toMatchObject({
    name: 'breather',
    excessUs: 2 * second,
  })
})
