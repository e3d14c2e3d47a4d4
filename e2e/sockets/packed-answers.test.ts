import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freePorts } from '../../scripts/lib/free-ports.mjs'
import { bootDevices } from '../lib/device/simulated-devices.ts'
import {
  type BootFiles,
  type EdgePorts,
  edgeAddress,
  edgeFigures,
  edgePorts,
  makeBootFiles,
  patterned,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const unitSize = 32 << 10
/** Of text, of zeros and of bytes that do not shrink, in turns. */
const units = 240
const scratch = scratchDirectory()
const store = path.join(scratch.path, 'store')
const disk = path.join(scratch.path, 'disk.raw')
const trace = path.join(scratch.path, 'trace.csv')
let files: BootFiles
let ports: EdgePorts
let version = ''

async function vdisk(args: string[]): Promise<RunningProcess> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store])
  expect(await running.ended, running.output).toBe(0)
  return running
}

/** Lasts until the test has ended; returns its figures. */
async function serve(args: string[]): Promise<() => Promise<Record<string, number | undefined>>> {
  const [port = 0] = await freePorts(1)
  const disks = ['--store', store, '--version', version, '--boot-files', files.bootFiles]
  const edge = await startLoopbackEdge(ports, [...disks, '--metrics', String(port), ...args])
  onTestFinished(async () => {
    await edge.stop()
  })
  return () => edgeFigures(port)
}

/** Every byte that the device reads is compared with the disk. */
async function boot(): Promise<void> {
  const servers = ['--server', edgeAddress, '--dhcp-port', String(ports.dhcp), '--tftp-port', String(ports.tftp)]
  const reads = ['--trace', trace, '--speed', '10', '--breather-ms', '0', '--verify', disk, '--read-ahead-mib', '16']
  const { exit, output } = await bootDevices([...servers, ...reads])
  expect(exit, output).toBe(0)
}

beforeAll(async () => {
  ports = await edgePorts()
  files = makeBootFiles(scratch.path, 1)
  const content = Buffer.concat(
    Array.from({ length: units }, (_, index) => {
      if (index % 4 === 1) return Buffer.alloc(unitSize)
      if (index % 4 === 2) return patterned(unitSize).map((byte, at) => byte ^ (at * index))
      return Buffer.alloc(unitSize, `unit ${index} of the disk has a line of text, again and again\n`)
    }),
  )
  writeFileSync(disk, content)
  // Whole units, parts of one, and more than one.
  const lines = Array.from({ length: units / 2 }, (_, index) => {
    const length = [unitSize, 4096, unitSize / 2, 3 * unitSize][index % 4] ?? unitSize
    return `${index},${Math.min(index * 2 * unitSize, content.length - length)},${length}`
  })
  writeFileSync(trace, ['time_ms,offset,length', ...lines, ''].join('\n'))
  await vdisk(['init'])
  const boots = ['--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet']
  const made = await vdisk(['import', disk, '--name', 'Lab', ...boots, '--json'])
  version = made.jsonLines<{ version?: string }>().at(-1)?.version ?? ''
})
afterAll(() => scratch.remove())

test('what a boot has read is packed for the next ones, and every byte is right', async () => {
  const figures = await serve([])
  await boot()
  const packed = async () => (await figures()).bootfarm_edge_answer_pieces_added_total
  await expect.poll(packed, { timeout: 50_000 }).toBeGreaterThan(units / 8)
  await boot()
  const { bootfarm_edge_stream_packed_answers_total: answers, ...others } = await figures()
  expect(answers).toBeGreaterThan(units / 8)
  expect(others.bootfarm_edge_stream_packed_saved_bytes_total).toBeGreaterThan((units / 8) * 16_000)
  const { bootfarm_edge_answer_pieces_bytes: taken, bootfarm_edge_answer_pieces_size_bytes: most = 0 } = others
  expect(taken).toBeLessThanOrEqual(most)
})

test('an edge without memory for it packs nothing, and its page says nothing of it', async () => {
  const figures = await serve(['--packed-memory', '0'])
  await boot()
  await boot()
  expect(Object.keys(await figures()).filter((name) => /packed|answer_pieces/.test(name))).toEqual([])
})
