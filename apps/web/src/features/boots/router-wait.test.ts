import { expect, test } from 'vitest'
import { routerWaitOf } from './router-wait.ts'

type Phases = Parameters<typeof routerWaitOf>[0]['phases']

const dhcp = { name: 'dhcp', startUs: 0, durationUs: 400_000 } as const
const nbp = { name: 'nbp', startUs: 500_000, durationUs: 1_000_000 } as const
const loaderAt = (startUs: number) => ({ name: 'loader', startUs, durationUs: 2_000_000 }) as const
const inferred = (phases: Phases) => routerWaitOf({ routerWait: null, phases })

test('the wait that the edge reports counts, heard or inferred', () => {
  const phases = [dhcp, loaderAt(60_000_000)]
  const routerWait = { atUs: 400_000, durationUs: 15_350_000, solicitations: 3 }
  expect(routerWaitOf({ routerWait, phases })).toEqual({ durationUs: 15_350_000, isHeard: true })
  expect(routerWaitOf({ routerWait: { ...routerWait, solicitations: 0 }, phases })).toMatchObject({ isHeard: false })
})

test('a pause before the kernel as long as iPXE waits for a router is one', () => {
  expect(inferred([dhcp, loaderAt(16_500_000)])).toEqual({ durationUs: 16_100_000, isHeard: false })
  expect(inferred([dhcp, nbp, loaderAt(15_000_000)])?.durationUs).toBe(13_500_000)
})

test('shorter and longer pauses are none, nor is a boot that has not come so far', () => {
  expect(inferred([dhcp, nbp, loaderAt(5_000_000)])).toBeNull()
  expect(inferred([dhcp, loaderAt(60_000_000)])).toBeNull()
  expect(inferred([dhcp])).toBeNull()
  expect(inferred([loaderAt(16_500_000)])).toBeNull()
  expect(inferred([{ ...dhcp, durationUs: null }, loaderAt(16_500_000)])).toBeNull()
})
