import { expect, test } from 'vitest'
import { randomNumbers } from '../../../test/seeded/random-numbers.ts'
import { DueHeap } from './due-heap.ts'

test('what is due first comes first, whatever was put in meanwhile', () => {
  const below = randomNumbers(3)
  const heap = new DueHeap(100)
  const due = new Map<number, number>()
  for (let round = 0; round < 5_000; round += 1) {
    const id = below(100)
    if (!due.has(id)) {
      due.set(id, below(1_000))
      heap.push(id, due.get(id) ?? 0)
    } else {
      expect(heap.nextAt).toBe(Math.min(...due.values()))
      const first = heap.pop()
      expect(due.get(first)).toBe(Math.min(...due.values()))
      due.delete(first)
    }
    expect(heap.size).toBe(due.size)
  }
})

test('nothing is due in an empty heap', () => {
  const heap = new DueHeap(1)
  expect(heap.nextAt).toBe(Number.POSITIVE_INFINITY)
  heap.push(0, 5)
  expect(heap.pop()).toBe(0)
  expect(heap.nextAt).toBe(Number.POSITIVE_INFINITY)
})
