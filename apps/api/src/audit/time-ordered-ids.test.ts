import { expect, test } from 'vitest'
import { z } from 'zod'
import { timeOrderedIds } from './time-ordered-ids.ts'

test('ids are UUIDs of version 7, each once, in the order of their making', () => {
  const first = new Date('2026-11-20T12:00:00Z')
  const again = Array.from({ length: 20 }, () => timeOrderedIds(first, 1)).flat()
  const ids = [...timeOrderedIds(first, 5_000), ...timeOrderedIds(new Date(first.getTime() + 1), 2)]
  expect([...again].sort()).toEqual(again)
  expect(again.at(-1)?.localeCompare(ids[0] ?? '')).toBe(-1)
  expect(ids.every((id) => z.uuidv7().safeParse(id).success)).toBe(true)
  expect(new Set(ids).size).toBe(ids.length)
  expect([...ids].sort()).toEqual(ids)
  expect(timeOrderedIds(new Date(), 0)).toEqual([])
})
