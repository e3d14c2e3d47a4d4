import { expect, test } from 'vitest'
import {
  formatAge,
  formatDay,
  formatInstant,
  formatInstantInFull,
  formatUtc,
  instantOfMinute,
  localMinute,
} from './format-time.ts'

const now = new Date('2026-11-18T22:30:00Z')

test('an instant of today shows its time, an older one its day, one of another year its year', () => {
  expect(formatInstant(new Date('2026-11-18T13:03:22Z'), now, 'Europe/Berlin')).toBe('14:03:22')
  expect(formatInstant(new Date('2026-11-17T13:03:22Z'), now, 'Europe/Berlin')).toBe('17 Nov 14:03')
  expect(formatInstant(new Date('2025-11-17T13:03:22Z'), now, 'Europe/Berlin')).toBe('17 Nov 2025')
})

test('today is a day of the zone shown, not of UTC', () => {
  expect(formatInstant(new Date('2026-11-18T23:30:00Z'), now, 'Asia/Tokyo')).toBe('08:30:00')
  expect(formatInstant(new Date('2026-11-18T13:30:00Z'), now, 'Asia/Tokyo')).toBe('18 Nov 22:30')
})

test('the full form names the zone, the UTC form is fixed', () => {
  const at = new Date('2026-11-18T13:03:22.900Z')
  expect(formatInstantInFull(at, 'Europe/Berlin')).toBe('18 Nov 2026, 14:03:22 CET')
  expect(formatUtc(at)).toBe('2026-11-18 13:03:22 UTC')
})

test('an age is never negative', () => {
  const plain = (at: string) => formatAge(new Date(at), now).replaceAll('\u00a0', ' ')
  expect(plain('2026-11-18T22:31:00Z')).toBe('just now')
  expect(plain('2026-11-18T22:29:30Z')).toBe('30 s ago')
  expect(plain('2026-11-18T20:29:30Z')).toBe('2 h ago')
  expect(plain('2026-11-15T20:29:30Z')).toBe('3 d ago')
})

test('a day keeps its date whatever the zone of the viewer', () => {
  expect(formatDay('2026-11-18')).toBe('Wed 18 Nov')
})

test('a field of an instant shows minutes of a zone, and gives an instant once its year is there', () => {
  expect(localMinute(new Date('2026-11-18T23:30:10Z'), 'Asia/Tokyo')).toBe('2026-11-19T08:30')
  expect(instantOfMinute('2026-11-19T08:30')).toBe(new Date(2026, 10, 19, 8, 30).toISOString())
  for (const text of ['0002-11-19T08:30', '12345-11-19T08:30', 'soon', '']) expect(instantOfMinute(text)).toBeNull()
})
