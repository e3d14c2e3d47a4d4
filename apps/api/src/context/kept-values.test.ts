import { expect, test } from 'vitest'
import { KeptValues } from './kept-values.ts'

test('a value is read again when its time is over, for each key by itself, and few are kept', async () => {
  const kept = new KeptValues<number>({ keptMs: 10_000, countMax: 2 })
  let reads = 0
  const get = (key: string, seconds: number) =>
    kept.get(key, new Date(seconds * 1_000), async () => {
      reads += 1
      return reads
    })
  expect([await get('a', 100), await get('a', 109), await get('b', 109), await get('a', 110)]).toEqual([1, 1, 2, 3])
  expect([await get('c', 110), await get('a', 111), await get('b', 111)]).toEqual([4, 3, 5])
  expect(await get('b', 50)).toBe(6)
})

test('what failed is not kept', async () => {
  const kept = new KeptValues<number>({ keptMs: 10_000, countMax: 2 })
  await expect(kept.get('a', new Date(0), () => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect(await kept.get('a', new Date(0), async () => 1)).toBe(1)
})
