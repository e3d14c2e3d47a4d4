import { describe, expect, it } from 'vitest'
import { chanceText, intervalText, signedDuration, verdictOf } from './lab-text.ts'

const difference = { us: -1_200_000, lowUs: -1_500_000, highUs: -900_000, isClear: true, chance: 0.004 }
const cell = { difference, failsMore: false, pairCount: 20 }

describe('verdictOf', () => {
  it.each([
    [cell, 'quicker'],
    [{ ...cell, difference: { ...difference, us: 5 } }, 'slower'],
    [{ ...cell, difference: { ...difference, isClear: false } }, 'may be chance'],
    [{ ...cell, difference: null, pairCount: 3 }, '3 of 7 pairs'],
    [{ ...cell, failsMore: true }, 'fails more'],
  ])('judges %j as %s', (one, text) => {
    expect(verdictOf(one, 7).text).toBe(text)
  })
})

describe('texts', () => {
  it('have signs and units', () => {
    expect(intervalText(difference)).toBe('−1.50\u00a0s to −900\u00a0ms')
    expect(signedDuration(0.2)).toBe('0\u00a0s')
  })

  it('say how likely chance is', () => {
    expect(chanceText(0.004)).toBe('about 1 in 250 by chance')
    expect(chanceText(0.0001)).toBe('less than 1 in 1,000 by chance')
    expect(chanceText(1)).toBe('as likely as not by chance')
  })
})
