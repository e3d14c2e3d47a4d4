import { expect, test } from 'vitest'
import { type BootPhase, bootPhases } from '../boot-phases.ts'
import { type BootPath, thousandths, tracePath } from './trace-path.ts'
import type { TracedBoot, TracedPhase, TracedStep } from './traced-boot.ts'

const ms = 1_000

function phase(name: BootPhase, startMs: number, durationMs: number, changes: Partial<TracedPhase> = {}): TracedPhase {
  const counts = { retries: 0, missingFragments: 0, reads: 0, bytesOut: 0 }
  const place = { name, startUs: startMs * ms, durationUs: durationMs * ms }
  const source = name === 'breather' ? ('inferred' as const) : ('observed' as const)
  return Object.assign({ ...place, ...counts, source, gaps: [] }, changes)
}

function step(group: TracedStep['group'], name: string, [startMs, durationMs]: [number, number]): TracedStep {
  return { group, name, startUs: startMs * ms, durationUs: durationMs * ms }
}

function boot(changes: Partial<TracedBoot>): TracedBoot {
  const nothing = {
    guest: null,
    routerWait: null,
    handOver: null,
    menuEntry: null,
    readTimes: null,
    bootCommandUs: null,
  }
  const none = { offers: [], loaderSteps: [], transfers: [] }
  return Object.assign({ outcome: 'ready' as const, totalUs: 0, phases: [], ...nothing, ...none }, changes)
}

/** A prepared Debian on an emulated BIOS machine, whose iPXE found no IPv6 router. */
const emulated = boot({
  totalUs: 38_500 * ms,
  phases: [
    phase('dhcp', 0, 33, { gaps: [] }),
    phase('loader', 17_100, 2_300, { gaps: [{ atUs: 17_300 * ms, durationUs: 400 * ms }] }),
    phase('breather', 19_400, 4_000),
    phase('stage2', 23_400, 15_100, { reads: 900, gaps: [{ atUs: 30_000 * ms, durationUs: 900 * ms }] }),
    phase('ready', 38_500, 0),
  ],
  routerWait: { atUs: 33 * ms, durationUs: 17_067 * ms, solicitations: 5 },
  guest: {
    kernelStartUs: 19_700 * ms,
    steps: [
      step('firmware', 'firmware', [-4_000, 4_000]),
      step('kernel', 'kernel', [19_700, 820]),
      step('initramfs', 'drivers', [20_520, 480]),
      step('initramfs', 'network', [21_000, 2_300]),
      step('initramfs', 'disk', [23_300, 300]),
      step('initramfs', 'hand-over', [23_600, 400]),
      step('system', 'load init', [24_000, 400]),
      step('system', 'userspace', [24_400, 14_200]),
      step('system', 'generators', [24_500, 1_500]),
      step('unit', 'systemd-udevd', [26_500, 1_300]),
      step('unit', 'beside-it', [26_600, 700]),
      step('unit', 'slow-database', [28_000, 10_000]),
    ],
  },
})

const readable = ({ segments }: BootPath) =>
  segments.map(({ fromUs, toUs, owner, source }) => `${fromUs / ms}-${toUs / ms} ${owner.key} ${source}`)

test('every millisecond of a machine’s boot has its owner', () => {
  const path = tracePath(emulated)
  expect(readable(path)).toEqual([
    '0-33 dhcp observed',
    '33-17100 loader_router observed',
    '17100-17300 loader observed',
    '17300-17700 loader_pause observed',
    '17700-19400 loader observed',
    '19400-19700 kernel_hand_over inferred',
    '19700-20520 kernel reported',
    '20520-21000 initramfs:drivers reported',
    '21000-23300 initramfs:network reported',
    '23300-23600 initramfs:disk reported',
    '23600-24000 initramfs:hand-over reported',
    '24000-24400 system:load init reported',
    '24400-24500 system:userspace reported',
    '24500-26000 system:generators reported',
    '26000-26500 system:userspace reported',
    '26500-27800 unit:systemd-udevd reported',
    '27800-28000 system:userspace reported',
    '28000-38000 unit:slow-database reported',
    '38000-38500 system:userspace reported',
  ])
  expect(path.inferredUs).toBeLessThan(0.15 * path.totalUs)
  expect(path.unattributedUs).toBe(0)
  expect(path.beforeUs).toBe(4_000 * ms)
  expect(path.owners[0]?.owner.title).toBe('iPXE: search for an IPv6 router')
  expect(path.owners.reduce((sum, { share }) => sum + share, 0)).toBe(1000)
})

test('DHCP belongs to the server that offers an address late, and then to the firmware that collects more', () => {
  const path = tracePath(
    boot({
      totalUs: 6_000 * ms,
      phases: [phase('dhcp', 0, 4_000), phase('nbp', 5_000, 1_000)],
      offers: [
        { atUs: 4 * ms, server: '10.0.0.1', ours: true, kind: 'proxy' },
        { atUs: 1_500 * ms, server: '10.0.0.9', ours: false, kind: 'address' },
      ],
    }),
  )
  expect(readable(path)).toEqual([
    '0-1500 dhcp_server:10.0.0.9 observed',
    '1500-4000 firmware_offers observed',
    '4000-5000 firmware_pause observed',
    '5000-6000 nbp observed',
  ])
})

test('a pause before the loader as long as iPXE’s search for a router is one, where an older edge does not say so', () => {
  const pausing = (loaderMs: number, changes: Partial<TracedBoot> = {}) =>
    readable(
      tracePath(
        boot({
          totalUs: (loaderMs + 1_000) * ms,
          phases: [phase('dhcp', 0, 400), phase('loader', loaderMs, 1_000)],
          ...changes,
        }),
      ),
    )[1]
  expect(pausing(16_500)).toBe('400-16500 loader_router inferred')
  expect(pausing(5_000)).toBe('400-5000 loader_gap observed')
  expect(pausing(60_000)).toBe('400-60000 loader_gap observed')
  expect(pausing(16_500, { menuEntry: 'Debian' })).toBe('400-16500 loader_gap observed')
})

test('a loader’s phase is told by its DHCP exchange, its downloads, and what it does between them', () => {
  const path = tracePath(
    boot({
      totalUs: 10_000 * ms,
      phases: [
        phase('nbp', 0, 1_000),
        phase('loader', 1_000, 9_000, {
          gaps: [
            { atUs: 1_000 * ms, durationUs: 2_000 * ms },
            { atUs: 6_000 * ms, durationUs: 1_000 * ms },
          ],
        }),
      ],
      loaderSteps: [
        { name: 'dhcp', startUs: 3_000 * ms, durationUs: 200 * ms },
        { name: 'script', startUs: 3_300 * ms, durationUs: 20 * ms },
        { name: 'kernel', startUs: 3_400 * ms, durationUs: 4_600 * ms },
        { name: 'initrd', startUs: 8_100 * ms, durationUs: 1_900 * ms },
      ],
      transfers: [
        { name: 'boot.ipxe', startUs: 3_300 * ms, bytes: 300 },
        { name: 'pxelinux.cfg/default', startUs: 8_200 * ms, bytes: 0 },
        ...['a', 'b', 'c', 'd'].map((name) => ({ name, startUs: 8_100 * ms, bytes: 1 })),
      ],
    }),
  )
  expect(path.segments.find(({ owner }) => owner.key === 'loader_script')?.evidence).toBe(
    'The edge served the script from +3.300 s to +3.320 s: “boot.ipxe”.',
  )
  expect(path.segments.at(-1)?.evidence).toMatch(/: “a”, “b”, “c” and 1 more\.$/)
  expect(readable(path)).toEqual([
    '0-1000 nbp observed',
    '1000-3000 loader_start observed',
    '3000-3200 loader_dhcp observed',
    '3200-3300 loader_pause observed',
    '3300-3320 loader_script observed',
    '3320-3400 loader_pause observed',
    '3400-6000 loader_kernel observed',
    '6000-7000 loader_stall observed',
    '7000-8000 loader_kernel observed',
    '8000-8100 loader_pause observed',
    '8100-10000 loader_initrd observed',
  ])
})

test('a step whose end nobody saw hides none of those after it', () => {
  const steps = [
    { name: 'other' as const, startUs: 100 * ms, durationUs: null },
    { name: 'kernel' as const, startUs: 400 * ms, durationUs: 500 * ms },
    { name: 'initrd' as const, startUs: 950 * ms, durationUs: null },
  ]
  const path = tracePath(boot({ totalUs: 2_000 * ms, phases: [phase('loader', 0, 2_000)], loaderSteps: steps }))
  expect(readable(path)).toEqual([
    '0-100 loader_start observed',
    '100-400 loader observed',
    '400-900 loader_kernel observed',
    '900-950 loader_pause observed',
    '950-2000 loader_initrd observed',
  ])
})

test('a kernel’s start that the boot program announces is not inferred', () => {
  const started = boot({
    totalUs: 6_000 * ms,
    phases: [phase('loader', 0, 2_003), phase('breather', 2_003, 2_997), phase('stage2', 5_000, 1_000)],
    loaderSteps: [{ name: 'kernel', startUs: 0, durationUs: 1_500 * ms }],
    bootCommandUs: 2_000 * ms,
    guest: { kernelStartUs: 3_400 * ms, steps: [step('kernel', 'kernel', [3_400, 2_600])] },
  })
  const path = tracePath(started)
  expect(readable(path)).toEqual([
    '0-1500 loader_kernel observed',
    '1500-2000 loader_last observed',
    '2000-2003 boot_command observed',
    '2003-3400 kernel_hand_over reported',
    '3400-6000 kernel reported',
  ])
  expect(path.inferredUs).toBe(0)
  expect(path.segments[3]?.evidence).toBe(
    "The boot program said at +2.000 s that it starts the kernel; by the device’s report its kernel's clock started at +3.400 s.",
  )
  expect(readable(tracePath({ ...started, bootCommandUs: null }))[2]).toBe('2003-3400 kernel_hand_over inferred')
  // A time that the phases contradict proves nothing.
  expect(readable(tracePath({ ...started, bootCommandUs: 9_000 * ms })).at(-2)).toBe(
    '2003-3400 kernel_hand_over inferred',
  )
})

test('without a report of the device the kernel’s start is inferred, and the silence of a fail-over is named', () => {
  const phases = [
    phase('dhcp', 0, 100),
    phase('loader', 100, 900, { gaps: [{ atUs: 100 * ms, durationUs: 300 * ms }] }),
    phase('breather', 1_000, 9_000),
    phase('stage2', 10_000, 10_000, { gaps: [{ atUs: 12_000 * ms, durationUs: 3_000 * ms }] }),
  ]
  const path = tracePath(boot({ totalUs: 20_000 * ms, phases, handOver: { atUs: 14_000 * ms }, menuEntry: 'Debian' }))
  expect(readable(path)).toEqual([
    '0-100 dhcp observed',
    '100-400 loader_start observed',
    '400-1000 loader observed',
    '1000-10000 kernel_unreported inferred',
    '10000-12000 stream observed',
    '12000-14000 fail_over observed',
    '14000-15000 stream_pause observed',
    '15000-20000 stream observed',
  ])
  expect(path.inferredUs).toBe(9_000 * ms)
})

test('a boot in progress has its time until now, and one without phases has none that is explained', () => {
  const open = boot({ outcome: null, totalUs: 500 * ms, phases: [phase('dhcp', 0, 0, { durationUs: null })] })
  expect(readable(tracePath(open, 2_000 * ms))).toEqual(['0-2000 dhcp observed'])
  expect(readable(tracePath(boot({ totalUs: 5 * ms })))).toEqual(['0-5 unattributed inferred'])
  expect(tracePath(boot({}))).toMatchObject({ totalUs: 0, segments: [], owners: [] })
})

test('a report that begins late leaves its first part unattributed, and says so', () => {
  const path = tracePath(boot({ totalUs: 2_000 * ms, phases: [phase('stage2', 1_000, 1_000)] }))
  expect(path.unattributedUs).toBe(1_000 * ms)
})

/** xorshift32: the same seed, the same numbers. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

const extremes = [0, 1, -1, 50_000, 10 ** 15, -(10 ** 15), Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]

/** A trace that no edge and no device would write: ends before starts, times beyond the boot, all at once. */
function hostileBoot(random: (below: number) => number): TracedBoot {
  const time = () => (random(4) === 0 ? (extremes[random(extremes.length)] ?? 0) : random(60_000_000) - 5_000_000)
  const some = <T>(max: number, make: () => T) => Array.from({ length: random(max + 1) }, make)
  const span = () => ({ atUs: time(), durationUs: time() })
  const groups = ['firmware', 'kernel', 'initramfs', 'system', 'unit'] as const
  const kinds = ['address', 'proxy', 'both'] as const
  return boot({
    totalUs: Math.abs(time()),
    phases: some(20, () => ({
      ...phase(bootPhases[random(bootPhases.length)] ?? 'dhcp', 0, 0),
      startUs: time(),
      durationUs: random(3) === 0 ? null : time(),
      gaps: some(30, span),
    })),
    guest: {
      kernelStartUs: time(),
      steps: some(60, () => ({
        group: groups[random(groups.length)] ?? 'unit',
        name: ['__proto__', 'constructor', 'disk', '=1+1', 'a'][random(5)] ?? '',
        startUs: time(),
        durationUs: time(),
      })),
    },
    offers: some(20, () => ({
      atUs: time(),
      server: '10.0.0.9',
      ours: random(2) === 0,
      kind: kinds[random(3)] ?? 'both',
    })),
    loaderSteps: some(9, () => ({
      name: (['dhcp', 'script', 'kernel', 'initrd', 'other'] as const)[random(5)] ?? 'other',
      startUs: time(),
      durationUs: random(3) === 0 ? null : time(),
    })),
    transfers: some(40, () => ({ name: '“”\u202e=1+1', startUs: time(), bytes: random(3) })),
    routerWait: { ...span(), solicitations: random(3) },
    bootCommandUs: random(3) === 0 ? null : time(),
    handOver: { atUs: time() },
  })
}

test('whatever a report says, the segments never overlap and sum to the whole boot', () => {
  const random = randomNumbers(0x0b00_7fa3)
  for (let round = 0; round < 3_000; round += 1) {
    const path = tracePath(hostileBoot(random))
    let atUs = 0
    for (const { fromUs, toUs, owner, evidence } of path.segments) {
      expect(fromUs).toBe(atUs)
      expect(toUs).toBeGreaterThan(fromUs)
      expect(Number.isSafeInteger(toUs)).toBe(true)
      expect(owner.title).not.toMatch(/waiting|\bother\b|undefined|\[object/)
      expect(evidence).not.toBe('')
      atUs = toUs
    }
    expect(atUs).toBe(path.totalUs)
    expect(path.segments.length).toBeLessThan(350)
    expect(path.owners.reduce((sum, { us }) => sum + us, 0)).toBe(path.totalUs)
    expect(path.owners.reduce((sum, { share }) => sum + share, 0)).toBe(path.totalUs === 0 ? 0 : 1000)
    expect(path.beforeUs ?? 0).toBeLessThanOrEqual(600_000_000)
  }
})

test('a device’s report moves time of its own kernel and system only', () => {
  const lies = [
    step('kernel', 'kernel', [0, 60_000]),
    step('unit', 'everything', [-5_000, 10 ** 9]),
    step('system', 'all', [1, 38_000]),
  ]
  const before = (path: BootPath) => readable(path).filter((line) => Number(line.split('-')[0]) < 19_400)
  const path = tracePath({ ...emulated, guest: { kernelStartUs: 0, steps: lies } })
  expect(before(path)).toEqual(before(tracePath(emulated)))
})

test('shares add up to a whole, whatever the parts are', () => {
  expect(thousandths([1, 1, 1])).toEqual([334, 333, 333])
  expect(thousandths([])).toEqual([])
  expect(thousandths([0, 0])).toEqual([0, 0])
  expect(thousandths([10 ** 15, 1])).toEqual([1000, 0])
})
