import { expect, test } from 'vitest'
import { z } from 'zod'
import { timeOrderedIds } from './time-ordered-ids.ts'

test('ids are UUIDs of version 7, each once, in the order of their making', () => {
  const first = timeOrderedIds(new Date('2026-11-20T12:00:00Z'), 5_000)
  const ids = [...first, ...timeOrderedIds(new Date('2026-11-20T12:00:00.001Z'), 2)]
  expect(ids.every((id) => z.uuidv7().safeParse(id).success)).toBe(true)
  expect(new Set(ids).size).toBe(ids.length)
  expect([...ids].sort()).toEqual(ids)
  expect(timeOrderedIds(new Date(), 0)).toEqual([])
})
