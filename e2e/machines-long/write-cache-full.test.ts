import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { edgeProgram } from '../lib/lab/programs.ts'

/**
 * Prints what is there, writes files to the edge's disk until one is refused, and reads the first one again from there.
 */
const fileSize = 1_000_000
const bootLimitMs = 240_000
const script = `
for file in $(ls /written 2>/dev/null); do echo "SUM $file $(md5sum </written/$file | cut -d' ' -f1)"; done
mkdir -p /written
for file in $(seq 60); do
  [ -e /written/$file ] && continue
  busybox dd if=/blob of=/written/$file bs=${fileSize} count=1 conv=fsync 2>/dev/null || { echo "REFUSED $file"; break; }
  echo "WRITTEN $file"
done
echo 3 >/proc/sys/vm/drop_caches
echo "KEPT $(md5sum </written/1 | cut -d' ' -f1)"
for file in $(ls /written); do echo "AGAIN $file $(md5sum </written/$file | cut -d' ' -f1)"; done
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const missing = machinesMissing()

interface KeptLayer {
  device: string
  class: string
  usedBytes: number
}

describe.skipIf(missing)(`a machine whose write cache is full${missing ? ` (${missing})` : ''}`, () => {
  let site: MachineSite
  let expected: string
  let written = 0
  const start = (...options: string[]) => site.startEdge('proxy', '', options)
  const persistent = ['--write-cache', 'edge_persistent']
  const vdisk = (...words: string[]) => ['vdisk', ...words, '--store', path.join(site.edgeData, 'store'), '--json']

  beforeAll(() => {
    site = new MachineSite('full', { script, blobSize: 4 << 20 })
    // The blob is not at the disk's start: writes are compared with the file that they were made from.
    const blob = execFileSync('debugfs', ['-R', 'cat /blob', site.disk.image], {
      maxBuffer: 8 << 20,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    expected = createHash('md5').update(blob.subarray(0, fileSize)).digest('hex')
  })
  afterAll(async () => {
    await site.remove()
  })

  test('stops with the cause where that is configured', { timeout: bootLimitMs }, async () => {
    const edge = await start(...persistent, '--write-cache-size', '6M')
    const machine = await site.powerOn('bios')
    const report = await finishedBoot(edge, (boot) => boot.outcome?.kind === 'failed')
    expect(report.outcome).toMatchObject({ cause: 'write_cache_full' })
    await machine.waitFor(/the write cache at the edge is full: the disk is halted/)
    expect(machine.output).not.toMatch(/^(REFUSED|KEPT)/m)
    expect(edge.output).toMatch(/is full \(6 MiB\): the device's disk is suspended/)
    written = [...machine.output.matchAll(/^WRITTEN/gm)].length
    expect(written).toBeGreaterThan(0)
    machine.kill('SIGKILL')
    await machine.ended
    await edge.stop()
  })

  test('finds everything that was acknowledged, and continues read-only where that is configured', {
    timeout: bootLimitMs,
  }, async () => {
    const edge = await start(...persistent, '--write-cache-size', '9M', '--write-cache-full', 'read_only')
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^ACKNOWLEDGED/m)
    const sums = new Map([...machine.output.matchAll(/^SUM (\d+) (\w+)/gm)].map(([, file, sum]) => [file, sum]))
    for (let file = 1; file <= written; file++) expect([file, sums.get(String(file))]).toEqual([file, expected])
    expect(machine.output).toMatch(/^REFUSED/m)
    expect(machine.output).toMatch(/this machine cannot write until it is restarted/)
    expect(machine.output).toMatch(new RegExp(`^KEPT ${expected}$`, 'm'))
    const report = await finishedBoot(edge, ({ guest }) => guest?.writeCache?.state === 'read_only')
    expect(report).toMatchObject({
      outcome: { kind: 'ready' },
      guest: { writeCache: { class: 'edge_persistent', usedBytes: 9 << 20, sizeBytes: 9 << 20 } },
    })
    machine.kill('SIGKILL')
    await machine.ended
    await edge.stop()
  })

  test('has its own image beside the cache, which is not taken from it while it runs', {
    timeout: bootLimitMs,
  }, async () => {
    const edge = await start('--write-cache', 'private')
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^WRITTEN 2$/m)
    expect(machine.output).not.toMatch(/^SUM/m)
    const kept = execFileSync(edgeProgram, vdisk('caches'), { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as KeptLayer)
    expect(kept.map((layer) => layer.class).sort()).toEqual(['edge_persistent', 'private'])
    const device = kept[0]?.device ?? ''
    const drop = (...words: string[]) =>
      spawnSync(edgeProgram, vdisk('drop-cache', '--device', device, ...words), { encoding: 'utf8' })
    const refused = drop('--private')
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringMatching(/runs.*shut it down first/)])
    // Nobody uses the other write cache now, and the edge need not be stopped.
    expect(drop()).toMatchObject({ status: 0, stdout: expect.stringMatching(/"dropped":1/) })
    await machine.waitFor(/^ACKNOWLEDGED/m)
    expect(machine.output).toMatch(new RegExp(`^KEPT ${expected}$`, 'm'))
    machine.kill('SIGKILL')
    await machine.ended
    await edge.stop()
    expect(drop('--private')).toMatchObject({ status: 0 })
  })

  const overflow = () => site.startEdge('proxy', 'bootfarm.overlay=4M', ['--write-cache', 'device_ram_overflow'])

  test('in memory continues at the edge, and reads everything again', {
    timeout: bootLimitMs,
  }, async () => {
    const edge = await overflow()
    const machine = await site.powerOn('bios')
    await machine.waitFor(/^ACKNOWLEDGED/m)
    const filesOf = (word: string) =>
      [...machine.output.matchAll(new RegExp(`^${word} (\\d+)( ${expected})?$`, 'gm'))].map(([, file]) => file)
    // More than its memory can hold.
    expect(filesOf('WRITTEN').length).toBeGreaterThan(8)
    const again = [...machine.output.matchAll(/^AGAIN (\d+) (\w+)/gm)].map(([, file, sum]) => `${file} ${sum}`)
    for (const file of filesOf('WRITTEN')) expect(again).toContain(`${file} ${expected}`)
    const report = await finishedBoot(edge, ({ guest }) => guest?.writeCache !== undefined)
    expect(report).toMatchObject({ guest: { writeCache: { class: 'device_ram_overflow' } } })
    machine.kill('SIGKILL')
    await machine.ended
    await edge.stop()
  })

  test('at an edge that ends stops with the cause', { timeout: bootLimitMs }, async () => {
    const before = await overflow()
    const machine = await site.powerOn('bios')
    // At first little or nothing is at the edge: it must become more than memory takes.
    await machine.waitFor(/^WRITTEN 6$/m)
    before.kill('SIGKILL')
    await before.ended
    const edge = await overflow()
    await machine.waitFor(/the edge has lost the writes of this machine; the disk is halted/)
    expect(machine.output).not.toMatch(/^ACKNOWLEDGED/m)
    const report = await finishedBoot(edge, (boot) => boot.outcome?.kind === 'failed')
    expect(report.outcome).toMatchObject({ cause: 'write_cache_lost' })
    machine.kill('SIGKILL')
    await machine.ended
  })
})
