import { expect, test } from 'vitest'
import { searchTerms } from './search-terms.ts'

test.each([
  ['52:54:00', '525400'],
  ['52-54-00-AB', '525400ab'],
  ['5254.00ab', '525400ab'],
  // A name as well: it is compared as it is.
  ['525400', null],
  ['52:5', null],
  ['pc-01', null],
  ['10.20.0.1', null],
])('%s has the digits of an address: %s', (search, digits) => {
  expect(searchTerms(search).digits).toBe(digits)
})

test.each([
  ['0b3f6a52', '0b3f6a52-0000-0000-0000-000000000000', '0b3f6a52-ffff-ffff-ffff-ffffffffffff'],
  ['0b3f6a52-6', '0b3f6a52-6000-0000-0000-000000000000', '0b3f6a52-6fff-ffff-ffff-ffffffffffff'],
  ['0B3F6A526C0F4B1D8A573F1DE5A0C701', '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701', '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'],
])('%s is the beginning of an id', (search, from, until) => {
  expect(searchTerms(search).ids).toEqual({ from, until })
})

test.each(['0b3f6a5', 'lab-0b3f6a52', '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c7011'])(
  '%s is no beginning of an id',
  (search) => {
    expect(searchTerms(search).ids).toBeNull()
  },
)

test.each([
  ['10.', '10.'],
  ['10.20', '10.20'],
  ['10.20.30.40', '10.20.30.40'],
  ['10', null],
  ['10.20.30.40.50', null],
  ['1000.1', null],
])('%s begins an address: %s', (search, ip) => {
  expect(searchTerms(search).ip).toBe(ip)
})

test.each([
  ['Linux 3', { vdisk: 'linux', number: 3 }],
  ['Lab image v12', { vdisk: 'lab image', number: 12 }],
  ['Linux version 3', { vdisk: 'linux', number: 3 }],
  ['Linux', null],
  ['3', null],
  ['Linux 12345678901234567890', null],
])('%s may name a version', (search, version) => {
  expect(searchTerms(search).version).toEqual(version)
})
