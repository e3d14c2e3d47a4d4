import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { type BootReport, bootReport, type DurationHistogram } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { edgeAddress, edgePorts, makeBootFiles, serveArguments, startLoopbackEdge } from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const running: RunningProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const files = makeBootFiles(scratch.path, 8192)
const size = 16_384
const firstReads = 12
const systemReads = 40
/** A device's reads in the first tenth of its boot belong to its initramfs. */
const atMs = [
  ...Array.from({ length: firstReads }, (_, index) => index),
  ...Array.from({ length: systemReads }, (_, index) => 100 + index * 8),
]

async function bootWith(lines: string[]): Promise<BootReport> {
  const trace = path.join(scratch.path, `trace-${lines.length}.csv`)
  writeFileSync(trace, `time_ms,offset,length\n${lines.join('\n')}\n`)
  const ports = await edgePorts()
  // With one thread it hears a device's messages in order.
  const edge = await startLoopbackEdge(ports, [...serveArguments(files), '--stream-shards', '1', '--json'])
  running.push(edge)
  const { exit, output } = await bootDevices([
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(ports.dhcp),
    '--tftp-port',
    String(ports.tftp),
    '--trace',
    trace,
    '--breather-ms',
    '1',
    '--verify',
    files.vdisk,
  ])
  expect(exit, output).toBe(0)
  // Its last message carries the steps.
  const [boot] = await printedBoots(edge, 1, ({ guest }) => (guest?.steps.length ?? 0) > 0)
  return bootReport.parse(boot)
}

const countOf = (...histograms: (DurationHistogram | undefined)[]) =>
  histograms.reduce((sum, one) => sum + (one?.counts.reduce((all, each) => all + each, 0) ?? 0), 0)

test('edge and device report where the time of the reads went in each phase, and both add up to the whole boot', async () => {
  const boot = await bootWith(atMs.map((ms, index) => `${ms},${index * size},${size}`))
  const { phases = [], ...whole } = boot.readTimes ?? {}
  // A slow machine's duplicate requests are read twice by the edge.
  const { retries = 0 } = boot.phases.find(({ name }) => name === 'stage2') ?? {}
  expect(phases.map(({ name }) => name)).toEqual(['initramfs', 'system'])
  for (const [index, reads] of [firstReads, systemReads].entries()) {
    const { bytes, warm, cold, send, fetch, wait } = phases[index] ?? {}
    expect(bytes).toBe(reads * size)
    for (const count of [countOf(fetch), countOf(wait)]) expect(count).toBe(reads)
    for (const count of [countOf(warm, cold), countOf(send)]) {
      expect(count).toBeGreaterThanOrEqual(reads)
      expect(count).toBeLessThanOrEqual(reads + retries)
    }
  }
  const names = ['warm', 'cold', 'send', 'late', 'wire', 'fetch', 'wait', 'turnaround'] as const
  const part = (name: (typeof names)[number]) => phases.map((phase) => phase[name])
  for (const name of names) {
    expect(countOf(whole[name])).toBe(countOf(...part(name)))
    expect(whole[name]?.sumUs ?? 0).toBe(part(name).reduce((sum, one) => sum + (one?.sumUs ?? 0), 0))
  }
  expect(whole.bytes).toBe((firstReads + systemReads) * size)
  expect(boot.machine).toEqual({
    processors: 4,
    memoryMib: 8192,
    model: 'Bootfarm simulated device',
    driver: 'bootfarm-sim',
    linkMbit: 1000,
  })
  // The network's part of nearly every read: those of the last ones may not be told before the next phase begins.
  for (const [index, reads] of [firstReads, systemReads].entries()) {
    const { wire, fetch } = phases[index] ?? {}
    expect(countOf(wire)).toBeGreaterThan(reads / 2)
    expect(countOf(wire)).toBeLessThanOrEqual(reads)
    expect(wire?.maxUs ?? 0).toBeLessThanOrEqual(fetch?.maxUs ?? 0)
  }
  // The machine's own time lies where it was: the recorded boot waits 89 ms before its system's first read.
  expect(phases[1]?.turnaround?.maxUs).toBeGreaterThan(50_000)
})

test('a device that is ready with its first read reports the whole boot alone', async () => {
  const { readTimes } = await bootWith([`0,0,${size}`])
  expect(readTimes?.phases).toBeUndefined()
  expect([readTimes?.bytes, countOf(readTimes?.fetch)]).toEqual([size, 1])
})
