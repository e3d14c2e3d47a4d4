import { expect, test } from 'vitest'
import { normalQuantile } from './normal-quantile.ts'

test('quantiles of the normal distribution are those of its tables', () => {
  for (const [p, z] of [
    [0.5, 0],
    [0.975, 1.959964],
    [0.995, 2.575829],
    [0.999999, 4.753424],
    [0.025, -1.959964],
  ] as const)
    expect(normalQuantile(p)).toBeCloseTo(z, 5)
})
