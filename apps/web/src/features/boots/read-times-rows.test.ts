import { expect, test } from 'vitest'
import { readTimesRows } from './read-times-rows'

test('each part has its share of all, and one that was not measured has none', () => {
  const times = (sumUs: number) => ({ count: 10, medianUs: 1, p95Us: 2, maxUs: 3, sumUs })
  const rows = readTimesRows({
    ...{ storage: times(100), coldReads: 0, send: times(300), wire: null, turnaround: times(600) },
    wait: times(5_000),
  })
  expect(rows.map(({ title, share }) => [title, share])).toEqual([
    ['Storage', 0.1],
    ['Send', 0.3],
    ['Wire', null],
    ['Turnaround', 0.6],
  ])
})

test('parts that took no time at all have a share of nothing', () => {
  const nothing = { count: 1, medianUs: 0, p95Us: 0, maxUs: 0, sumUs: 0 }
  const rows = readTimesRows({
    ...{ storage: nothing, coldReads: 0, send: nothing, wire: nothing, turnaround: nothing, wait: null },
  })
  expect(rows.map(({ share }) => share)).toEqual([0, 0, 0, 0])
})
