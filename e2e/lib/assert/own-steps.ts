import type { BootReport } from '@bootfarm/proto/uplink'
import { expect } from 'vitest'

/** A device's clock in the initramfs counts hundredths of a second. */
const ownToleranceUs = 20_000

/** Checks a machine's own timings: no gap from its kernel's start until ready, and within what the edge saw. */
export function expectOwnStepsInsidePhases({ guest, phases }: BootReport): void {
  const steps = guest?.steps ?? []
  expect(steps.map(({ group, name }) => `${group}: ${name}`)).toEqual([
    'kernel: kernel',
    ...['drivers', 'network', 'disk', 'root', 'overlay', 'hand-over'].map((name) => `initramfs: ${name}`),
    'system: until ready',
  ])
  const ends = steps.map(({ startUs, durationUs }) => startUs + durationUs)
  expect(steps.map(({ startUs }) => startUs)).toEqual([0, ...ends.slice(0, -1)])
  const phase = (name: string) => phases.find((found) => found.name === name)
  const atUs = (own = Number.NaN) => (guest?.kernelStartUs ?? Number.NaN) + own
  const end = (name: string) => (phase(name)?.startUs ?? Number.NaN) + (phase(name)?.durationUs ?? Number.NaN)
  const disk = steps.findIndex(({ name }) => name === 'disk')
  const instants = [
    { what: 'the last byte for the loader', us: end('loader') },
    { what: "the kernel's start", us: atUs(0) },
    { what: 'the begin of disk', us: atUs(steps[disk]?.startUs) },
    { what: 'the first stream packet', us: end('breather') },
    { what: 'the first read', us: phase('stage2')?.startUs ?? Number.NaN },
    { what: 'the end of disk', us: atUs(ends[disk]) },
    { what: 'ready', us: phase('ready')?.startUs ?? Number.NaN },
  ]
  console.log(instants.map(({ what, us }) => `${what}: ${us} µs`).join('\n'))
  for (const [index, { what, us }] of instants.entries()) {
    const before = instants[index - 1]
    if (before) expect(us, `${what} comes after ${before.what}`).toBeGreaterThan(before.us - ownToleranceUs)
  }
}
