import { expect, test } from 'vitest'
import {
  linksText,
  linkText,
  type NetworkPath,
  type NetworkReport,
  pathName,
  shareText,
  summaryOf,
} from './network-text.ts'

const path: NetworkPath = {
  siteId: 'site',
  siteName: 'Bern',
  segment: '10.0.0.0/24',
  card: 'e1000e 8086:15b8',
  bootCount: 8,
  deviceCount: 4,
  toDevice: null,
  fromDevice: null,
  reordering: null,
  rtt: null,
  tftp: [],
  links: [],
  faults: [],
}
const report: NetworkReport = {
  since: '2026-11-01T00:00:00Z',
  until: '2026-11-29T00:00:00Z',
  bootCount: 1,
  isCut: false,
  bootsMin: 5,
  otherPaths: 0,
  paths: [path],
}

test('shares have two digits, and what is too small has none', () => {
  expect([0, 0.000_001, 0.0123, 0.5, 1].map(shareText)).toEqual(
    ['0 %', '< 0.001 %', '1.2 %', '50 %', '100 %'].map((text) => text.replace(' %', '\u00a0%')),
  )
})

test('a link is its speed, and half duplex is said', () => {
  expect(linkText({ linkMbit: 2500, duplex: 'full' })).toBe('2.5\u00a0Gbit/s')
  expect(linkText({ linkMbit: 100, duplex: 'half' })).toBe('100\u00a0Mbit/s half duplex')
  expect(linkText({ linkMbit: null, duplex: 'full' })).toBe('full duplex')
  expect(linkText({ linkMbit: null, duplex: null })).toBe('unknown')
  expect(linksText(path)).toBeNull()
  const usual = { linkMbit: 1000, duplex: 'full', deviceCount: 4 } as const
  expect(linksText({ ...path, links: [usual] })).toBe('1\u00a0Gbit/s')
  const slow = { linkMbit: 100, duplex: 'half', deviceCount: 2 } as const
  expect(linksText({ ...path, links: [usual, slow] })).toBe('1\u00a0Gbit/s, 2 others')
})

test('the summary counts paths with faults, and not those with notices', () => {
  expect(summaryOf(report)).toBe('1 boot measured their network: nothing to check.')
  const told = { text: '', check: '', bootCount: 1, bootIds: [], deviceCount: 1, devices: [] }
  const faults = [{ kind: 'device_drops', severity: 'notice', ...told }] as const
  expect(summaryOf({ ...report, paths: [{ ...path, faults: [...faults] }] })).toMatch(/nothing to check/)
  const fault = { kind: 'mtu', severity: 'fault', ...told } as const
  const paths = [{ ...path, faults: [fault] }, path]
  expect(summaryOf({ ...report, bootCount: 20_000, isCut: true, paths })).toBe(
    'The newest 20,000 boots measured their network: 1 of 2 paths to check.',
  )
  expect(pathName({ ...path, segment: null, card: null })).toBe('No address, unknown card')
})
