import { execFileSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import type { BootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { edgeIdOf, type FailOverDevice, FailOverSite, siteKeys } from '../lib/lab/fail-over-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import { namespacesMissing } from '../lib/lab/segment.ts'

const goalUs = 3_000_000
const missing = namespacesMissing()
const scratch = scratchDirectory()
let site: FailOverSite

/** Edges of one site, two of which were told of the change of keys already and all others not. */
async function start(count: number): Promise<void> {
  const keys = Array.from({ length: count }, (_, index) => (index === 1 ? siteKeys(7, 6) : siteKeys(6, 7)))
  site = new FailOverSite(scratch.path, keys)
  await site.untilServing()
}

/** What can become of an edge, all of a sudden. */
const fates = {
  killed: (index: number) => site.edges[index]?.kill('SIGKILL'),
  stopped: (index: number) => site.edges[index]?.kill('SIGSTOP'),
  'cut off': (index: number) => {
    const { command, args } = site.segment.onEdge('ip', ['link', 'set', 'edge0', 'down'], index)
    execFileSync(command, args)
  },
}

/** It went on at this edge, all bytes right, as one boot with the times that it had. */
function expectHandOver(device: FailOverDevice, at: number): void {
  expect(device.outcome, device.output).toBe('ready')
  expect(device.handOvers).toBe(1)
  expect(device.longestReadUs).toBeLessThan(goalUs)
  const [begun] = site.boots(0)
  const boots = site.edges.map((_, index) => site.boots(index))
  expect(boots.map(({ length }) => length)).toEqual(boots.map((_, index) => (index === 0 || index === at ? 1 : 0)))
  const [wentOn] = boots[at] ?? []
  expect(wentOn?.id).toBe(begun?.id)
  expect(wentOn?.outcome).toEqual({ kind: 'ready' })
  expect(wentOn?.handOver).toMatchObject({ number: 1, fromEdgeId: edgeIdOf(0) })
  expect(wentOn?.revision).toBeGreaterThan(begun?.revision ?? Number.POSITIVE_INFINITY)
  const timesOf = (boot: BootReport | undefined) =>
    boot?.phases
      .filter(({ name }) => !['stage2', 'ready'].includes(name))
      .map(({ name, startUs }) => ({ name, startUs }))
  expect(timesOf(wentOn)).toEqual(timesOf(begun))
}

describe.skipIf(missing)(`a device whose edge goes in mid-boot${missing ? ` (${missing})` : ''}`, () => {
  afterEach(() => site.remove())
  afterAll(() => scratch.remove())

  for (const [fate, strike] of Object.entries(fates)) {
    test(`goes on at the other edge when its own is ${fate}`, async () => {
      await start(2)
      expectHandOver(await site.boot(() => void strike(0)), 1)
    })

    test(`goes on at the last of four edges when the three before it are ${fate}`, async () => {
      await start(4)
      expectHandOver(await site.boot(() => [0, 1, 2].forEach(strike)), 3)
    })
  }

  test('goes on at the last of seven edges when the six before it stand still, which later changes nothing of it', async () => {
    await start(7)
    const others = [0, 1, 2, 3, 4, 5]
    const device = await site.boot(() => others.forEach(fates.stopped))
    expectHandOver(device, 6)
    const saidOf = (index: number, what: string) =>
      new RegExp(`${edgeIdOf(index)} of this site is not heard any more[^]*${what}`)
    for (const index of others) await site.edges[6]?.waitFor(saidOf(index, ''))
    for (const index of others) site.edges[index]?.kill('SIGCONT')
    for (const index of others) await site.edges[6]?.waitFor(saidOf(index, `${edgeIdOf(index)} of this site is heard`))
    expectHandOver(device, 6)
    expect(site.boots(0)[0]?.outcome?.kind).not.toBe('failed')
  })

  test('is refused where the site has other keys, and goes on when its own edge does', async () => {
    site = new FailOverSite(scratch.path, [siteKeys(6, 7), siteKeys(8, 9)])
    await site.untilServing()
    const device = await site.boot(async () => {
      fates.stopped(0)
      // Long enough for it to have asked the other edge, which would have taken it by then.
      await pause(2500)
      site.edges[0]?.kill('SIGCONT')
    })
    expect(device.outcome, device.output).toBe('ready')
    expect(device.handOvers).toBe(0)
    expect(site.boots(1)).toEqual([])
  })
})
