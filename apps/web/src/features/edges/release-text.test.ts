import { updateCauses, updateStates } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { releaseText } from './release-text'

const text = (state: string, cause: string | null) => releaseText({ version: '0.2.0', attempt: 1, state, cause })

test('every word of an edge has a sentence, and an unknown one is shown as it is', () => {
  for (const state of updateStates) expect(text(state, null)).not.toBe(`0.2.0, ${state} `)
  for (const cause of updateCauses) expect(text('failed', cause)).not.toContain(`: ${cause.replaceAll('_', ' ')}`)
  expect(text('failed', 'ended')).toBe(
    '0.2.0, failed: the program ended while it was on probation; the edge runs its former release',
  )
  expect(text('turned_inside_out', 'too_odd')).toBe('0.2.0, turned inside out: too odd')
})
