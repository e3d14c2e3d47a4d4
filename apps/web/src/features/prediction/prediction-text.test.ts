import { expect, test } from 'vitest'
import { type Prediction, predictionBasis, predictionFacts, predictionHeadline } from './prediction-text.ts'

const seconds = (value: number, low: number, high: number) => ({ value: value * 1e6, low: low * 1e6, high: high * 1e6 })
const plain = (text: string) => text.replaceAll('\u00a0', ' ')

type OfVersion = Prediction['version']
const storm: NonNullable<OfVersion['storm']> = {
  p50Us: seconds(40.4, 36, 45),
  p95Us: seconds(70, 62, 79),
  lastUs: seconds(74, 66, 83),
  linkShare: 0.982,
  bytes: 6e9,
  limitedBy: 'link',
  parts: { aloneUs: 31e6, sharedUs: 14e6, storageUs: 0 },
}
const version: OfVersion = { versionId: 'a', number: 15, bootCount: 12, unknownBecause: null, storm }
const current: OfVersion = { ...version, number: 14, bootCount: 40, storm: { ...storm, lastUs: seconds(51, 45, 58) } }
const prediction: Prediction = {
  siteId: 's',
  siteName: 'Berlin',
  devices: 200,
  startsPerSecond: null,
  reads: 'warm',
  edges: 1,
  linkMbps: 1000,
  isLinkGiven: false,
  stormBoots: 80,
  isProcessorKnown: true,
  version,
  current,
}

test('the answer is one sentence, beside what it is now', () => {
  expect(plain(predictionHeadline(prediction))).toBe(
    'With version 15, 200 devices need 74 s (66 to 83 s) in place of 51 s with version 14 until the last one is ready.',
  )
  expect(plain(predictionHeadline({ ...prediction, current: null, devices: 1 }))).toContain(
    '1 device needs 74 s (66 to 83 s) until it is ready.',
  )
})

test('then when most are ready, what the link carries, and what limits', () => {
  expect(predictionFacts(prediction).map(plain)).toEqual([
    'Half of them are ready within 40 s (36 to 45 s) of their start, 19 of 20 within 70 s (62 to 79 s).',
    'The edge’s link is at 98 %. What limits them is the link.',
  ])
})

test('the basis names boots, storms and what is assumed', () => {
  const basis = predictionBasis(prediction).map(plain)
  expect(basis[0]).toBe(
    'The mean boot takes 45 s: 31 s by itself, and it waits 14 s because others use the link or the edge.',
  )
  expect(basis[1]).toContain('12 boots of version 15 and 40 boots of version 14')
  expect(basis[2]).toContain('80 boots of storms')
  const unsure = predictionBasis({ ...prediction, stormBoots: 0, isProcessorKnown: false, isLinkGiven: true }).map(
    plain,
  )
  expect(unsure.join(' ')).toContain('is assumed')
  expect(unsure.join(' ')).toContain('1 Gbit/s, as you entered.')
  expect(unsure.join(' ')).toContain('processors carry is not known')
})

test('long times have minutes', () => {
  const long = { ...storm, lastUs: seconds(200, 110, 300) }
  expect(plain(predictionHeadline({ ...prediction, current: null, version: { ...version, storm: long } }))).toContain(
    '200 devices need 3 min 20 s (110 s to 5 min) until',
  )
})

test('where too little is known, it says what to do', () => {
  const unknown = (unknownBecause: NonNullable<OfVersion['unknownBecause']>) =>
    plain(predictionHeadline({ ...prediction, version: { ...version, bootCount: 2, unknownBecause, storm: null } }))
  expect(unknown('few_boots')).toBe(
    'No prediction for version 15: it has 2 boots at Berlin without others, and 5 are needed. Boot it on a test device.',
  )
  expect(unknown('link_unknown')).toContain('Enter it.')
  expect(unknown('no_devices')).toContain('Enter a number')
  expect(predictionFacts({ ...prediction, version: { ...version, storm: null } })).toEqual([])
  const lone = predictionFacts({ ...prediction, current: { ...current, unknownBecause: 'few_boots', storm: null } })
  expect(plain(lone.at(-1) ?? '')).toContain('no prediction for version 14')
})
