import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import { type DiskPartition, flipBits, makeLocalDisk, readDisk } from '../lib/images/local-disk.ts'
import { finishedBoot, MachineSite } from '../lib/lab/machine-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

/**
 * Waits for a word on its console, writes more than the 4 MiB of memory that its kernel command line allows, and reads
 * all of it again, not from the machine's own memory.
 */
const files = 10
const fileSize = 1_000_000
const bootLimitMs = 300_000
const script = `
mkdir -p /written
for file in $(seq ${files}); do
  busybox dd if=/blob of=/written/$file bs=${fileSize} count=1 conv=fsync 2>/dev/null || { echo "REFUSED $file"; break; }
  echo "WRITTEN $file"
done
sync
echo 3 >/proc/sys/vm/drop_caches
echo "WRITTEN ALL"
busybox head -n 1 >/dev/null
for file in $(ls /written); do echo "AGAIN $file $(md5sum </written/$file | cut -d' ' -f1)"; done
bootfarm-target ready busybox && echo "ACKNOWLEDGED"
`
const mebibyte = 1 << 20
const cacheSize = 80 * mebibyte
/** The areas before and after the marked partition. */
const partitions: DiskPartition[] = [
  { name: 'system', first: 2048, count: (7 * mebibyte) / 512 },
  { name: 'bootfarm-cache', first: (8 * mebibyte) / 512, count: cacheSize / 512 },
]
const marked = { at: 8 * mebibyte, size: cacheSize }
const diskSize = 96 * mebibyte
const missing = machinesMissing()

describe.skipIf(missing)(`a machine with its own disk${missing ? ` (${missing})` : ''}`, () => {
  const scratch = scratchDirectory()
  let site: MachineSite
  let edge: RunningProcess
  let machine: RunningProcess | undefined
  let blob: Buffer
  let unmarked: string
  let disk: string

  const sumOf = (file: string, ...ranges: [number, number][]) => {
    const hash = createHash('sha256')
    for (const [from, to] of ranges) hash.update(readDisk(file, from, to - from))
    return hash.digest('hex')
  }
  /** Everything that belongs only to the machine's owner. */
  const untouched = () => [
    sumOf(unmarked, [0, 16 * mebibyte]),
    sumOf(disk, [0, marked.at], [marked.at + marked.size, diskSize]),
  ]
  const start = (...options: string[]) =>
    site.startEdge('proxy', 'bootfarm.overlay=4M', ['--write-cache', 'device_ram_local_disk', ...options])

  beforeAll(() => {
    site = new MachineSite('localdisk', { script, blobSize: 4 * mebibyte })
    blob = execFileSync('debugfs', ['-R', 'cat /blob', site.disk.image], {
      maxBuffer: 8 * mebibyte,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  })
  beforeEach(() => {
    unmarked = makeLocalDisk(path.join(scratch.path, 'unmarked.raw'), 16 * mebibyte)
    disk = makeLocalDisk(path.join(scratch.path, 'marked.raw'), diskSize, partitions)
    site.ownDisks = [unmarked, disk]
  })
  afterEach(async () => {
    machine?.kill('SIGKILL')
    await machine?.ended
    await edge.stop()
  })
  afterAll(async () => {
    await site.remove()
    scratch.remove()
  })

  test('writes what exceeds its memory to the marked partition alone, unreadable there, and reads it again', {
    timeout: bootLimitMs,
  }, async () => {
    const before = untouched()
    const empty = sumOf(disk, [marked.at, marked.at + marked.size])
    edge = await start()
    machine = await site.powerOn('bios')
    await machine.waitFor(/^WRITTEN ALL/m)
    expect(machine.output).toMatch(/writes that do not fit in memory go to vdb2: \d+ MiB/)
    machine.write('go\n')
    await machine.waitFor(/^ACKNOWLEDGED/m)
    const expected = createHash('md5').update(blob.subarray(0, fileSize)).digest('hex')
    const again = [...machine.output.matchAll(/^AGAIN \d+ (\w+)/gm)].map(([, sum]) => sum)
    expect(again).toEqual(Array.from({ length: files }, () => expected))
    const report = await finishedBoot(edge, ({ guest }) => guest?.writeCache !== undefined)
    expect(report).toMatchObject({
      outcome: { kind: 'ready' },
      guest: { writeCache: { class: 'device_ram_local_disk' } },
    })
    expect(untouched()).toEqual(before)
    expect(sumOf(disk, [marked.at, marked.at + marked.size])).not.toBe(empty)
    const raw = readDisk(disk, marked.at, marked.size)
    // Finds one line per KiB of what the machine wrote.
    for (let at = 0; at + 32 <= fileSize; at += 1024 * 37) expect(raw.includes(blob.subarray(at, at + 32))).toBe(false)
  })

  test('stops with the cause when its data there was changed, and gets none of it', {
    timeout: bootLimitMs,
  }, async () => {
    edge = await start()
    machine = await site.powerOn('bios')
    await machine.waitFor(/^WRITTEN ALL/m)
    flipBits(disk, marked.at, marked.size)
    machine.write('go\n')
    const report = await finishedBoot(edge, (boot) => boot.outcome?.kind === 'failed')
    expect(report.outcome).toMatchObject({ cause: 'write_cache_lost' })
    await machine.waitFor(/the local disk returned other bytes than this machine wrote; the disk is halted/)
    expect(machine.output).not.toMatch(/^ACKNOWLEDGED/m)
  })

  test('stops with the cause when the partition is full', { timeout: bootLimitMs }, async () => {
    edge = await start('--write-cache-size', '2M')
    machine = await site.powerOn('bios')
    const report = await finishedBoot(edge, (boot) => boot.outcome?.kind === 'failed')
    expect(report.outcome).toMatchObject({ cause: 'write_cache_full' })
    await machine.waitFor(/the write cache on the local disk is full: the disk is halted/)
    expect(machine.output).not.toMatch(/^WRITTEN ALL/m)
  })

  test('does not start without a marked partition, and says what to do', {
    timeout: bootLimitMs,
  }, async () => {
    const before = untouched()
    site.ownDisks = [unmarked]
    edge = await start()
    machine = await site.powerOn('bios')
    const report = await finishedBoot(edge, (boot) => boot.outcome?.kind === 'failed')
    expect(report.outcome).toMatchObject({
      cause: 'write_cache_disk_unusable',
      text: 'no partition of 1 local disks is named bootfarm-cache',
    })
    await machine.waitFor(/sgdisk -n 0:0:\+20G -c 0:bootfarm-cache/)
    expect(machine.output).not.toMatch(/^WRITTEN/m)
    expect(untouched()).toEqual(before)
  })
})
