import type { BootReport } from '@bootfarm/proto/uplink'
import { describe, expect, it } from 'vitest'
import { departureOf } from './boot-departure.ts'

const report = {
  cipher: 'aegis128l',
  mtu: 1500,
  readAhead: { hadProfile: true, askedBytes: 100, usedBytes: 50, waitedReads: 1 },
  phases: [{ name: 'stage2', readSizes: [0, 0, 0, 9, 0, 0, 0, 0, 20] }],
} as unknown as BootReport

describe('departureOf', () => {
  it.each([
    ['stream=clear', 'encrypted'],
    ['mtu=1400', '1500 bytes'],
    ['read-ahead=off', 'read ahead'],
    ['read-limit=64k', 'more at once'],
  ])('tells that a boot did not have %s', (setting, words) => {
    expect(departureOf(report, ['codec=off', setting])).toContain(words)
  })

  it.each([
    'stream=sealed',
    'mtu=1500',
    'read-ahead=64m',
    'read-limit=128k',
    'read-limit=off',
    'codec=off',
    'cache=cold',
  ])('has nothing against %s', (setting) => {
    expect(departureOf(report, [setting])).toBeNull()
  })

  it('does not count the few reads that no limit cuts', () => {
    const phases = [{ name: 'stage2', readSizes: [0, 0, 0, 9, 0, 0, 0, 0, 2] }] as unknown as BootReport['phases']
    expect(departureOf({ ...report, phases }, ['read-limit=4k'])).toBeNull()
  })

  it('leaves out boots that went on at another edge', () => {
    const handOver = { number: 1, fromEdgeId: '00000000-0000-4000-8000-000000000000', atUs: 1 }
    expect(departureOf({ ...report, handOver }, [])).toContain('another edge')
  })
})
