import { copyFileSync, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import type { BootReport } from '@bootfarm/proto/uplink'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { macOf } from '../lib/device/machine.ts'
import { listeningScript, MachineConsole } from '../lib/device/machine-console.ts'
import { machinesMissing } from '../lib/device/machine-kernel.ts'
import type { TestVersion } from '../lib/edge/enrolled-edge.ts'
import { EnrolledSite, edgeIdOf, siteKeys } from '../lib/edge/enrolled-site.ts'
import { flipBits, makeLocalDisk } from '../lib/images/local-disk.ts'
import { MachineSite } from '../lib/lab/machine-site.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const bootLimitMs = 180_000
/** Measured from the last byte of one edge to the first of the next. */
const goalUs = 3_000_000
const mebibyte = 1 << 20
const isOver = (boot: BootReport) => boot.outcome !== undefined
const missing = machinesMissing()
let siteCount = 0

interface EdgesOptions {
  /** Precedes what the machine's console needs. */
  commandLine?: string
  writeCache?: TestVersion['writeCache']
  /** The second edge has no version and no device. */
  otherIsEmpty?: boolean
}

describe.skipIf(missing)(`a machine whose edge disappears${missing ? ` (${missing})` : ''}`, () => {
  const scratch = scratchDirectory()
  let site: MachineSite
  let edges: EnrolledSite
  let machine: RunningProcess
  let console: MachineConsole

  beforeAll(() => {
    site = new MachineSite('failover', { script: listeningScript, blobSize: 8 * mebibyte }, { edges: 2 })
  })
  beforeEach(() => {
    site.ownDisks = []
  })
  afterEach(async () => {
    machine?.kill('SIGKILL')
    await machine?.stop()
    site.segment.setEdgeCable(0, true)
    await edges.stop()
  })
  afterAll(async () => {
    await site.remove()
    scratch.remove()
  })

  async function powerOn(options: EdgesOptions = {}, withOther = true): Promise<void> {
    edges = twoEdges(options)
    await (withOther ? edges.startAll() : edges.start(0))
    machine = await site.powerOn('bios')
    console = new MachineConsole(machine)
    await machine.waitFor(/^SUM /m)
  }

  /**
   * Starts two edges with the same version. The first one answers machines that start; the other one takes no new boots
   * while the first is there.
   */
  function twoEdges({ commandLine = '', writeCache, otherIsEmpty }: EdgesOptions): EnrolledSite {
    const version = {
      sizeBytes: statSync(site.disk.image).size,
      diskPath: 'disk',
      kernelPath: 'kernel',
      initrdPath: 'initrd',
      commandLine: `${commandLine} ${site.commandLine}`.trim(),
      ...(writeCache ? { writeCache } : {}),
    }
    return new EnrolledSite({
      segment: site.segment,
      folder: path.join(scratch.path, `edges${siteCount++}`),
      edges: [{ draining: false }, { draining: true }],
      ticketKeys: [siteKeys(6, 7), siteKeys(6, 7)],
      desired: (index) =>
        otherIsEmpty && index === 1 ? { macs: [], versions: [] } : { macs: [macOf(0)], versions: [version] },
      stock: (store) => {
        mkdirSync(store, { recursive: true })
        copyFileSync(site.disk.image, path.join(store, 'disk'))
        copyFileSync(site.kernel, path.join(store, 'kernel'))
        copyFileSync(site.initrd, path.join(store, 'initrd'))
      },
      start: (index, data) => site.startEdgeOfSite(index, data),
    })
  }

  const served = (index: number, how: 'now' | 'again') =>
    machine.waitFor(new RegExp(`the edge ${edges.nameOf(index)} serves the disk ${how}`))

  /** Everything that the machine read was right and in time, and belongs to one boot. */
  async function expectWell(): Promise<void> {
    await console.untilRead(1)
    expect(new Set(console.sums)).toEqual(new Set([site.disk.blobSum]))
    expect(machine.output).not.toMatch(/I\/O error/)
    const { waitMax } = (await console.status()).readTimesUs
    process.stdout.write(`the longest read took ${Math.round(waitMax / 1000)} ms\n`)
    expect(waitMax).toBeLessThan(goalUs)
    expect(new Set([...edges.boots(0), ...edges.boots(1)].map(({ id }) => id)).size).toBe(1)
  }

  function bootAt(index: number): BootReport {
    const [boot, ...more] = edges.boots(index)
    if (!boot || more.length > 0) throw new Error(`${more.length + (boot ? 1 : 0)} boots at edge ${index}`)
    return boot
  }

  test('fails over when its edge is killed, stays there when its own program is killed, and returns when the second edge is killed', {
    timeout: bootLimitMs,
  }, async () => {
    await powerOn()
    edges.edge(0).kill('SIGKILL')
    await served(1, 'now')
    await expectWell()
    expect(await console.status()).toMatchObject({ edge: edges.nameOf(1), handOvers: 1 })

    await edges.untilMissed(1)
    const heard = edges.untilHeardAgain(1)
    await edges.start(0)
    await heard
    await console.crash()
    await served(1, 'again')
    await console.ready()
    await expectWell()
    expect(await console.status()).toMatchObject({ edge: edges.nameOf(1), handOvers: 0, processesBefore: 1 })
    expect(await edges.untilReported(1, isOver)).toMatchObject({
      outcome: { kind: 'ready' },
      handOver: { number: 1, fromEdgeId: edgeIdOf(0) },
      id: bootAt(0).id,
      mac: bootAt(0).mac,
    })
    expect(bootAt(1).revision).toBeGreaterThan(bootAt(0).revision)

    edges.edge(1).kill('SIGKILL')
    await served(0, 'now')
    await expectWell()
    const isBack = (boot: BootReport) => isOver(boot) && boot.handOver !== undefined
    expect(await edges.untilReported(0, isBack)).toMatchObject({
      outcome: { kind: 'ready' },
      handOver: { number: 2, fromEdgeId: edgeIdOf(1) },
    })
    expect(bootAt(0).revision).toBeGreaterThan(bootAt(1).revision)
    await console.end()
  })

  test('fails over when its edge is stopped, with its writes on its own disk, and reports there when that is lost', {
    timeout: bootLimitMs,
  }, async () => {
    const cacheAt = mebibyte
    const cacheSize = 80 * mebibyte
    const partition = { name: 'bootfarm-cache', first: cacheAt / 512, count: cacheSize / 512 }
    const disk = makeLocalDisk(path.join(scratch.path, 'own.raw'), cacheAt + cacheSize + mebibyte, [partition])
    site.ownDisks = [disk]
    const writeCache = { class: 'device_ram_local_disk', full: 'stop' as const }
    await powerOn({ writeCache, commandLine: 'bootfarm.overlay=2M' })
    await console.run('cat /blob >/written; sync; echo "WRITTEN $(ls /)"')
    await machine.waitFor(/^WRITTEN /m)

    edges.edge(0).kill('SIGSTOP')
    await served(1, 'now')
    await console.run('echo "AGAIN $(md5sum </written)"')
    await machine.waitFor(new RegExp(`^AGAIN ${site.disk.blobSum}`, 'm'))
    await console.ready()
    await expectWell()
    await edges.untilMissed(1)
    const heard = edges.untilHeardAgain(1)
    edges.edge(0).kill('SIGCONT')
    await heard
    await expectWell()
    expect(bootAt(0).outcome).toBeUndefined()
    expect(await edges.untilReported(1, isOver)).toMatchObject({
      outcome: { kind: 'ready' },
      handOver: { number: 1, fromEdgeId: edgeIdOf(0) },
    })

    flipBits(disk, cacheAt, cacheSize)
    await console.run('echo 3 >/proc/sys/vm/drop_caches; md5sum </written')
    await machine.waitFor(/returned other bytes than this machine wrote; the disk is halted/)
    await edges.untilReported(1, ({ guest }) => guest?.writeCache?.state === 'lost')
  })

  test('fails over when its edge is cut off, to an edge that came while the machine was running', {
    timeout: bootLimitMs,
  }, async () => {
    await powerOn({}, false)
    expect((await console.status()).otherEdges).toEqual([])
    await edges.start(1)
    await console.statusWith(({ otherEdges }) => otherEdges.includes(edges.nameOf(1)))
    await console.ready()
    site.segment.setEdgeCable(0, false)
    await served(1, 'now')
    await expectWell()
    expect(await edges.untilReported(1, isOver)).toMatchObject({
      outcome: { kind: 'ready' },
      handOver: { number: 1, fromEdgeId: edgeIdOf(0) },
    })
    await console.end()
  })

  test('waits for its stopped edge where the other one lacks the disk, and the console says so once', {
    timeout: bootLimitMs,
  }, async () => {
    await powerOn({ otherIsEmpty: true })
    edges.edge(0).kill('SIGSTOP')
    // By then it has asked the other edge several times.
    await machine.waitFor(/no edge has served the disk for \d+ s; /)
    edges.edge(0).kill('SIGCONT')
    await served(0, 'again')
    await console.untilRead(1)
    expect(new Set(console.sums)).toEqual(new Set([site.disk.blobSum]))
    const refusal = `the edge ${edges.nameOf(1)} does not take over this boot: it does not have this disk`
    expect(machine.output.split(refusal)).toHaveLength(2)
    expect(machine.output).not.toMatch(/I\/O error/)
    expect(edges.boots(1)).toEqual([])
    await console.end()
  })

  test('whose writes are kept waits for its edge, and never reads what lies below them at the other one', {
    timeout: bootLimitMs,
  }, async () => {
    await powerOn({ writeCache: { class: 'edge', full: 'stop' } })
    await console.run('cat /bin/busybox >/blob; sync; echo "WRITTEN $(md5sum </bin/busybox)"')
    const [, written = ''] = await machine.waitFor(/^WRITTEN (\w{32})/m)
    await console.untilRead(1)
    expect(console.sums.at(-1)).toBe(written)

    edges.edge(0).kill('SIGSTOP')
    await machine.waitFor(new RegExp(`this machine's writes are stored on the edge ${edges.nameOf(0)}; waiting for it`))
    const before = console.sums.length
    edges.edge(0).kill('SIGCONT')
    await served(0, 'again')
    await console.untilRead(1)
    expect(new Set(console.sums.slice(before))).toEqual(new Set([written]))

    edges.edge(0).kill('SIGKILL')
    await edges.edge(0).ended
    await edges.start(0)
    await machine.waitFor(/the edge refused to resume this boot \(cache_lost\); the disk is halted/)
    const { outcome } = await edges.untilReported(0, isOver)
    expect(outcome).toMatchObject({ kind: 'failed', cause: 'write_cache_lost' })
    const after = console.sums.length
    expect(edges.boots(1)).toEqual([])
    expect(new Set(console.sums.slice(before))).toEqual(new Set([written]))
    expect(console.sums.length).toBe(after)
    expect(machine.output).not.toMatch(/I\/O error/)
  })
})
