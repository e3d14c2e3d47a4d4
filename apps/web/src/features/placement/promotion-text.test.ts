import { expect, test } from 'vitest'
import { promotionTitle } from './promotion-text'

test('a panel says what waits, and what was given up', () => {
  const givenUp = { at: '2026-11-28T10:00:00Z', reason: 'An edge did not get version 3 in time.' }
  expect(promotionTitle({ number: 3, step: 'promote', givenUp: null })).toBe(
    'Promotion of version 3: waiting for edges',
  )
  expect(promotionTitle({ number: 2, step: 'revert', givenUp })).toBe('Roll back to version 2: given up')
})
