import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { filesRead } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { storedVersion, testUuid, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  type BootFiles,
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { SlowFiles, slowFilesMissing } from '../lib/edge/slow-files.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

/** Of each program: far from one another, so that the kernel reads none ahead. */
const [readSize, distance] = [32 << 10, 256 << 10]
const counts = { plymouthd: 100, journald: 30 }
/** This program reads in another part of the disk; after it, the other one computes before it reads. */
const journalAt = 48 << 20
const computesMs = 300
/** What a cold read of the edge's files takes longer: more than anything else here. */
const delayMs = 100

/** The device that has the first program's reads in the edge's memory, and the one that is measured. */
const [warmer, measured] = ['02:bf:00:00:01:01', '02:bf:00:00:01:02']

const scratch = scratchDirectory()
const disk = path.join(scratch.path, 'disk.raw')
const missing = slowFilesMissing()
let ports: EdgePorts
let files: BootFiles

const readsOf = { plymouthd: placesFrom(0, counts.plymouthd), journald: placesFrom(journalAt, counts.journald) }

function placesFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index * distance)
}

/** Reads of a boot, each as soon as the device has room for it, and a pause between the programs. */
function writeTrace(name: string, programs: number[][]): string {
  const lines = programs.flatMap((places, index) =>
    places.map((offset) => `${index * computesMs},${offset},${readSize}`),
  )
  const file = path.join(scratch.path, name)
  writeFileSync(file, ['time_ms,offset,length', ...lines, ''].join('\n'))
  return file
}

const vdisk = (...args: string[]) => execFileSync(edgeProgram, ['vdisk', ...args], { encoding: 'utf8' })

/**
 * An enrolled edge with a store of its own for each boot: a boot teaches the next ones of its version what to read
 * ahead.
 */
function makeStore(name: string) {
  const data = path.join(scratch.path, name)
  const store = path.join(data, 'store')
  mkdirSync(data)
  vdisk('init', '--store', store)
  const boots = ['--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet']
  const said = vdisk('import', disk, '--store', store, '--name', 'gain', ...boots, '--json')
  const { version } = JSON.parse(said.trim().split('\n').at(-1) ?? '{}') as { version: string }
  const { vdisks, versionId } = storedVersion(vdisk('show', '--json', '--store', store, '--version', version))
  const devices = [warmer, measured].map((mac, index) => ({
    id: testUuid(300 + index),
    name: `device ${index}`,
    mac,
    versionId,
    enabled: true,
  }))
  writeEnrolledEdge(data, [], [], [], undefined, { vdisks, devices })
  return { store, version, data }
}

/** The page cache keeps nothing of these files. */
function forget(store: string): void {
  for (const entry of readdirSync(store, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = path.join(entry.parentPath, entry.name)
    execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' })
  }
}

async function boot(mac: string, trace: string): Promise<void> {
  const servers = ['--server', edgeAddress, '--dhcp-port', String(ports.dhcp), '--tftp-port', String(ports.tftp)]
  const reads = ['--first-mac', mac, '--trace', trace, '--breather-ms', '0', '--verify', disk]
  const { exit, output } = await bootDevices([...servers, ...reads])
  expect(exit, output).toBe(0)
}

/**
 * Boots a device whose edge reads its disk slowly, after one that has read `before`; returns how long it streamed, and
 * the list of its reads.
 */
async function slowBoot(name: string, trace: string, before?: string) {
  const { store, version, data } = makeStore(name)
  forget(store)
  const edge = await startLoopbackEdge(ports, ['--json', '--boot-files', files.bootFiles, '--data', data])
  onTestFinished(async () => {
    await edge.stop()
  })
  if (before) await boot(warmer, before)
  const slow = await SlowFiles.of(edge, delayMs, path.join(scratch.path, `${name}.strace`))
  await boot(measured, trace)
  const [report] = await printedBoots(edge, 1, ({ mac, outcome }) => mac === measured && outcome?.kind === 'ready')
  await slow.end()
  const list = path.join(data, 'reads', `${report?.id}.reads`)
  await expect.poll(() => readdirSync(path.join(data, 'reads')), { timeout: 20_000 }).toContain(path.basename(list))
  await edge.stop()
  const stage2 = report?.phases.find(({ name: phase }) => phase === 'stage2')
  return { store, version, list, streamedUs: stage2?.durationUs ?? Number.NaN }
}

/** What a device with these programs would have told: docs/reference/files-read.md. */
function accountOf(programs: Record<string, number[]>): Buffer {
  const head = Buffer.alloc(18)
  head.write('BFTRACE1', 'latin1')
  const names = Object.keys(programs)
  head.writeUInt16BE(names.length, 16)
  const texts = names.flatMap((name) =>
    [name, `${name}.service`].map((text) => Buffer.from([text.length, ...Buffer.from(text, 'latin1')])),
  )
  let end = 0
  const runs = Object.values(programs).flatMap((places, program) =>
    places.flatMap((offset) => {
      const run = sevenBits((offset / 512 - end) * 2).concat(sevenBits(readSize / 512), sevenBits(program))
      end = (offset + readSize) / 512
      return run
    }),
  )
  return Buffer.concat([head, ...texts, Buffer.from(runs)])
}

function sevenBits(number: number): number[] {
  return number < 128 ? [number] : [(number % 128) | 128, ...sevenBits(Math.floor(number / 128))]
}

/** Puts the account behind the edge's list of a boot. */
function tell(list: string, account: Buffer): void {
  const bytes = readFileSync(list)
  bytes.writeUInt32LE(account.length, 52)
  writeFileSync(list, Buffer.concat([bytes, account]))
}

describe.skipIf(missing)(`the gain that a boot's page predicts${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    ports = await edgePorts()
    files = makeBootFiles(scratch.path, 1)
    writeFileSync(disk, randomBytes(64 << 20))
  })
  afterAll(() => scratch.remove())

  test('is what a replay of the boot gains with these reads in the edge’s memory, within 15 %', {
    timeout: 180_000,
  }, async () => {
    // First the reads that are cold in both: a device that has had fast answers asks slow disks again too early.
    const trace = writeTrace('all.csv', [readsOf.journald, readsOf.plymouthd])
    const cold = await slowBoot('cold', trace)
    tell(cold.list, accountOf(readsOf))
    const said = vdisk('files', '--store', cold.store, '--version', cold.version, '--reads', cold.list, '--json')
    const { programs = [], trace: told } = filesRead.parse(JSON.parse(said))
    expect(told?.state).toBe('complete')
    expect(programs.map(({ name }) => name)).toEqual(['plymouthd', 'journald'])
    const [most] = programs
    expect(most).toMatchObject({ unit: 'plymouthd.service', aheadBytes: 0 })
    // A device that waits long may ask again, under another name.
    expect(most?.coldBytes).toBeGreaterThanOrEqual(counts.plymouthd * readSize)
    expect(most?.coldBytes).toBeLessThan(1.2 * counts.plymouthd * readSize)
    const predictedUs = most?.gainUs ?? 0

    const warm = await slowBoot('warm', trace, writeTrace('first.csv', [readsOf.plymouthd]))
    const gainedUs = cold.streamedUs - warm.streamedUs
    const ratio = predictedUs / gainedUs
    process.stdout.write(`predicted ${predictedUs} µs, gained ${gainedUs} µs: ${ratio.toFixed(3)}\n`)
    expect(ratio).toBeGreaterThanOrEqual(0.85)
    expect(ratio).toBeLessThanOrEqual(1.15)
  })
})
