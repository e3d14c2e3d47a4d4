import { expect, test } from 'vitest'
import { memoryGibOf, memoryRange } from './memory-size.ts'

test('each size in MiB is in the range of what it is rounded to, and in no other', () => {
  for (const mib of [1, 511, 512, 1023, 1535, 1536, 2559, 2560, 7_900, 8_192, 16_895, 16_896, 2 ** 31 - 1]) {
    const gib = memoryGibOf(mib)
    const isIn = (one: number) => memoryRange(one).gte <= mib && mib <= memoryRange(one).lte
    expect([gib - 1, gib, gib + 1].filter((one) => one > 0 && isIn(one))).toEqual([gib])
  }
})
