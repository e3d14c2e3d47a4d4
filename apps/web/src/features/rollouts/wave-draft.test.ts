import { expect, test } from 'vitest'
import { notIncluded, waveOptions, wavesOf } from './wave-draft'

const sites = [
  { id: 'empty', edgeCount: 0 },
  { id: 'first', edgeCount: 1 },
  { id: 'second', edgeCount: 2 },
]

test('the first site with edges is the canary, and all others follow together', () => {
  expect(wavesOf(sites, {})).toEqual([['first'], ['empty', 'second']])
})

test('a chosen canary leaves the rest in the second wave', () => {
  expect(wavesOf(sites, { second: 0 })).toEqual([['second'], ['empty', 'first']])
})

test('two canaries, or a wave without a site, are shown as they are chosen', () => {
  expect(wavesOf(sites, { first: 0, second: 0 })).toEqual([['first', 'second'], ['empty']])
  expect(wavesOf(sites, { empty: 2, second: 2 })).toEqual([['first'], [], ['empty', 'second']])
})

test('a site that is not included is in no wave', () => {
  expect(wavesOf(sites, { empty: notIncluded, second: notIncluded })).toEqual([['first']])
  expect(waveOptions(1).map(({ label }) => label)).toEqual(['Canary', 'Wave 2'])
})
