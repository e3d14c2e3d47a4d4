import { expect, test } from 'vitest'
import { progressText, promotionTitle } from './promotion-text'

test('a panel says what waits, and what was given up', () => {
  const givenUp = { at: '2026-11-28T10:00:00Z', reason: 'An edge did not get version 3 in time.' }
  expect(promotionTitle({ number: 3, step: 'promote', givenUp: null })).toBe(
    'Promotion of version 3: waiting for edges',
  )
  expect(promotionTitle({ number: 2, step: 'revert', givenUp })).toBe('Rollback to version 2: given up')
})

test('progress names the edges that hold the version, and what ends the wait', () => {
  expect(progressText({ number: 3, heldCount: 1, lackingCount: 3 })).toBe(
    '1 of 4 edges holds version 3. Production devices get it at their next boot after all 4 do.',
  )
  expect(progressText({ number: 3, heldCount: 0, lackingCount: 1 })).toBe(
    '0 of 1 edge hold version 3. Production devices get it at their next boot after the edge does.',
  )
})
