import { expect, test } from 'vitest'
import { openBootId } from './open-boot.ts'

const id = '0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3'

test.each([
  [`/boots/${id}`, id],
  ['/boots', null],
  // The API would refuse it, and the page would get no live updates at all.
  ['/boots/none', null],
  [`/devices/${id}`, null],
])('%s asks for the boot %s whole', (pathname, bootId) => {
  expect(openBootId(pathname)).toBe(bootId)
})
