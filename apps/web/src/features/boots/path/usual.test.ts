import { expect, test } from 'vitest'
import { baselineOf, usualSentence } from './usual.ts'

const dhcp = { name: 'dhcp' as const, p10Us: 1_000_000, p50Us: 2_000_000, p90Us: 3_000_000 }
const total = { p10Us: 1, p50Us: 2, p90Us: 3 }
const enough = { bootCount: 20, total, phases: [dhcp] }
const few = { bootCount: 3, total: null, phases: [] }
const sentence = (...input: Parameters<typeof usualSentence>) => usualSentence(...input).replaceAll('\u00a0', ' ')

test('a device is compared with itself, or else with its version', () => {
  expect(baselineOf({ device: enough, version: enough })).toEqual({ of: 'device', times: enough })
  expect(baselineOf({ device: few, version: enough })).toEqual({ of: 'version', times: enough })
  expect(baselineOf({ device: null, version: few })).toBe(null)
  expect(baselineOf(undefined)).toBe(null)
})

test('a sentence names the phases outside of the usual range, or why there is no range', () => {
  const usual = { device: enough, version: null }
  const of = (durationUs: number | null) => sentence([{ name: 'dhcp', durationUs }], usual)
  expect(of(2_000_000)).toBe('Grey: usual range of this device, p10 to p90 of 20 boots. Every phase is within it.')
  expect(of(4_500_000)).toMatch(/20 boots\. DHCP is 1\.50 s above it\.$/)
  expect(of(500_000)).toMatch(/20 boots\. DHCP is 500 ms below it\.$/)
  expect(of(null)).toMatch(/Every phase is within it\.$/)
  expect(sentence([], { device: few, version: null })).toMatch(/: only 3 earlier boots of this device or version/)
  expect(sentence([], { device: null, version: null })).toMatch(/: no earlier boot of this device or version/)
})
