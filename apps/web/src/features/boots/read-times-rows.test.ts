import { expect, test } from 'vitest'
import { readTimesGroups, readTimesRows } from './read-times-rows'

test('each part has its share of all, one that was not measured has none, and neither has what is no part', () => {
  const times = (sumUs: number) => ({ count: 10, medianUs: 1, p95Us: 2, maxUs: 3, sumUs })
  const rows = readTimesRows({
    reads: 10,
    bytes: 40_960,
    storage: times(100),
    warm: times(60),
    cold: times(40),
    coldReads: 10,
    send: times(300),
    wire: null,
    fetch: times(900),
    late: { ...times(70), count: 2 },
    turnaround: times(600),
    wait: times(5_000),
  })
  expect(rows.map(({ title, share }) => [title, share])).toEqual([
    ['Storage, from memory', 0.06],
    ['Storage, from disk', 0.04],
    ['Send', 0.3],
    ['Network', null],
    ['Client think time', 0.6],
    ['Whole read', null],
    ['Delay by retransmission', null],
    ['Blocked on disk', null],
  ])
})

test('parts that took no time at all have a share of nothing', () => {
  const nothing = { count: 1, medianUs: 0, p95Us: 0, maxUs: 0, sumUs: 0 }
  const rows = readTimesRows({
    reads: 1,
    bytes: null,
    storage: nothing,
    warm: nothing,
    cold: null,
    coldReads: 0,
    send: nothing,
    wire: { ...nothing, medianUs: null, p95Us: null, maxUs: null },
    fetch: null,
    late: null,
    turnaround: nothing,
    wait: null,
  })
  expect(rows.map(({ share }) => share)).toEqual([0, null, 0, 0, 0])
})

test('each phase has its group, one without reads has no rows, and the whole boot comes last', () => {
  const one = { count: 1, medianUs: 1, p95Us: 1, maxUs: 1, sumUs: 1 }
  const read = {
    reads: 2,
    bytes: 8_192,
    storage: one,
    warm: one,
    cold: null,
    coldReads: 0,
    send: one,
    wire: { ...one, medianUs: null, p95Us: null, maxUs: null },
    fetch: one,
    late: null,
    turnaround: one,
    wait: one,
  }
  const none = {
    reads: 0,
    bytes: 0,
    storage: null,
    warm: null,
    cold: null,
    coldReads: 0,
    send: null,
    wire: null,
    fetch: null,
    late: null,
    turnaround: null,
    wait: null,
  }
  const groups = readTimesGroups({
    ...read,
    phases: [
      { name: 'initramfs', ...read },
      { name: 'system', ...none },
    ],
  })
  expect(groups.map(({ title, reads, rows }) => [title, reads, rows.length])).toEqual([
    ['Initramfs', 2, 7],
    ['OS', 0, 0],
    ['Whole boot', 2, 7],
  ])
  expect(readTimesGroups({ ...read, phases: [] }).map(({ title }) => title)).toEqual(['Whole boot'])
})
