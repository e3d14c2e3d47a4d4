import { expect, test } from 'vitest'
import { usualTimesOf } from './usual-times.ts'

const boot = (totalUs: number, dhcpUs?: number) => ({ totalUs, phases: [{ name: 'dhcp', durationUs: dhcpUs }] })

test('the spread of earlier boots is between their tenths', () => {
  const boots = [10, 30, 20, 50, 40, 60, 90, 80, 70, 100, 0].map((us) => boot(us, 2 * us))
  expect(usualTimesOf(boots)).toEqual({
    bootCount: 11,
    total: { p10Us: 10, p50Us: 50, p90Us: 90 },
    phases: [{ name: 'dhcp', p10Us: 20, p50Us: 100, p90Us: 180 }],
  })
  expect(usualTimesOf([1, 2, 3, 4, 9].map((us) => boot(us)))).toMatchObject({
    total: { p10Us: 1, p50Us: 3, p90Us: 7 },
    phases: [],
  })
})

test('too few boots have no usual times', () => {
  expect(usualTimesOf([1, 2, 3, 4].map((us) => boot(us, us)))).toEqual({ bootCount: 4, total: null, phases: [] })
})
