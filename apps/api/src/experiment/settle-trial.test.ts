import { describe, expect, it } from 'vitest'
import { settleTrial } from './settle-trial.ts'

const now = new Date('2026-11-29T12:00:00Z')
const boot = {
  startedAt: new Date('2026-11-29T11:59:30Z'),
  outcome: 'ready' as const,
  failedCause: null,
  durationUs: 20_000_000n,
  phases: [{ name: 'stage2', startUs: 0, durationUs: 9 }, { name: 'ready' }],
}
const asked = { reason: null, bootSeconds: 60, now }

describe('settleTrial', () => {
  it('keeps the time and the phases of a ready boot', () => {
    expect(settleTrial(boot, asked)).toEqual({
      state: 'ready',
      reason: null,
      durationUs: 20_000_000n,
      phases: [{ name: 'stage2', durationUs: 9 }],
      endedAt: now,
    })
  })

  it('waits for a boot until its time is over', () => {
    expect(settleTrial({ ...boot, outcome: null }, asked)).toBeNull()
    expect(settleTrial({ ...boot, outcome: null }, { ...asked, bootSeconds: 29 })).toMatchObject({ state: 'failed' })
    expect(settleTrial(boot, { ...asked, bootSeconds: 19 })).toMatchObject({ state: 'failed', durationUs: null })
  })

  it.each([
    ['failed', 'failed'],
    ['silent', 'failed'],
    ['no_response', 'failed'],
    ['superseded', 'dropped'],
    ['local_disk', 'dropped'],
  ] as const)('counts a boot that ended as %s as %s', (outcome, state) => {
    expect(settleTrial({ ...boot, outcome }, asked)).toMatchObject({ state })
  })

  it('never counts a boot that did not have the settings', () => {
    expect(settleTrial(boot, { ...asked, reason: 'it read ahead' })).toMatchObject({
      state: 'dropped',
      reason: 'it read ahead',
    })
    expect(settleTrial(null, asked)).toMatchObject({ state: 'dropped' })
  })
})
