import { expect, test } from 'vitest'
import { routerWaitUs } from './router-wait.ts'

const dhcp = { name: 'dhcp', startUs: 0, durationUs: 400_000 } as const
const nbp = { name: 'nbp', startUs: 500_000, durationUs: 1_000_000 } as const
const loaderAt = (startUs: number) => ({ name: 'loader', startUs, durationUs: 2_000_000 }) as const

test('a pause before the kernel as long as iPXE waits for a router is one', () => {
  expect(routerWaitUs([dhcp, loaderAt(16_500_000)])).toBe(16_100_000)
  expect(routerWaitUs([dhcp, nbp, loaderAt(15_000_000)])).toBe(13_500_000)
})

test('shorter and longer pauses are none, nor is a boot that has not come so far', () => {
  expect(routerWaitUs([dhcp, nbp, loaderAt(5_000_000)])).toBeNull()
  expect(routerWaitUs([dhcp, loaderAt(60_000_000)])).toBeNull()
  expect(routerWaitUs([dhcp])).toBeNull()
  expect(routerWaitUs([loaderAt(16_500_000)])).toBeNull()
  expect(routerWaitUs([{ ...dhcp, durationUs: null }, loaderAt(16_500_000)])).toBeNull()
})
