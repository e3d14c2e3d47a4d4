import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/** Reads a large file once, and prints the result of reading ahead. */
const blobSize = 16 << 20
const bootLimitMs = 240_000
const script = `
echo "SUM $(md5sum </blob | cut -d' ' -f1)"
echo "STATUS $(bootfarm-target status)"
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()
let site: MachineSite
let edge: RunningProcess

interface Status {
  reads: number
  readAhead: { bytes: number; hits: number; usedBytes: number }
}

describe.skipIf(missing)(`machines that read ahead${missing ? ` (${missing})` : ''}`, () => {
  const boots: { sum: string; status: Status; stage2Us: number }[] = []

  async function boot(): Promise<(typeof boots)[number]> {
    const before = boots.length
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(machine.output).not.toMatch(/I\/O error/)
    const sum = machine.output.match(/^SUM (\w{32})/m)?.[1] ?? ''
    const status = JSON.parse(machine.output.match(/^STATUS (.*)$/m)?.[1] ?? '{}') as Status
    expect(await machine.ended).toBe(0)
    let seen = 0
    const report = await finishedBoot(edge, ({ outcome }) => outcome?.kind === 'ready' && seen++ === before)
    const stage2 = report.phases.find(({ name }) => name === 'stage2')
    boots.push({ sum, status, stage2Us: stage2?.durationUs ?? 0 })
    return boots.at(-1) as (typeof boots)[number]
  }

  beforeAll(async () => {
    site = new MachineSite('profile', { script, blobSize })
    edge = await site.startEnrolledEdge([{}])
    site.segment.loseEach(1)
  })
  afterAll(async () => {
    await site.remove()
  })

  test('the second boot reads ahead what the first one read, and gets the same bytes', {
    timeout: 2 * bootLimitMs,
  }, async () => {
    const first = await boot()
    expect(first.status.readAhead).toEqual({ bytes: 0, hits: 0, usedBytes: 0 })
    const profiles = path.join(site.edgeData, 'store', 'profiles')
    // The profile of the machine's hardware, and the one of all hardware.
    const kept = () => (existsSync(profiles) ? readdirSync(profiles).filter((name) => !name.endsWith('.new')) : [])
    await expect.poll(kept, { timeout: 30_000 }).toHaveLength(2)
    const second = await boot()
    expect(second.sum).toBe(first.sum)
    expect(second.status.readAhead.usedBytes, JSON.stringify(boots)).toBeGreaterThan(blobSize / 2)
    expect(second.status.readAhead.usedBytes).toBeGreaterThan(0.8 * second.status.readAhead.bytes)
  })
})
