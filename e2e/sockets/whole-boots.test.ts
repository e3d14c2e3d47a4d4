import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { bootReport } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { printedBoots } from '../lib/device/simulated-devices.ts'
import {
  type BootFiles,
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { bootTrace, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

/** The recorded boot reads up to here. */
const diskSize = 419_430_400
const allPhases = ['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready']

const scratch = scratchDirectory()
let files: BootFiles

beforeAll(() => {
  files = makeBootFiles(scratch.path, 1)
  fillWhereRead(files.vdisk)
})
afterAll(() => scratch.remove())

/** Bytes that differ everywhere, where the recorded boot reads; the rest remains a hole. */
function fillWhereRead(disk: string): void {
  const fd = openSync(disk, 'r+')
  ftruncateSync(fd, diskSize)
  for (const line of readFileSync(bootTrace, 'utf8').trim().split('\n').slice(1)) {
    const [, offset = 0, length = 0] = line.split(',').map(Number)
    const bytes = Buffer.alloc(length)
    for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32BE(Math.imul(offset + at, 2654435761) >>> 0, at)
    writeSync(fd, bytes, 0, length, offset)
  }
  closeSync(fd)
}

function startDevices(ports: EdgePorts, count: number, speed: number): RunningProcess {
  return new RunningProcess(simProgram, [
    'boot',
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(ports.dhcp),
    '--tftp-port',
    String(ports.tftp),
    '--devices',
    String(count),
    '--speed',
    String(speed),
    '--trace',
    bootTrace,
    '--verify',
    files.vdisk,
    '--json',
  ])
}

async function bootsOf(edge: RunningProcess, count: number) {
  return (await printedBoots(edge, count)).map((boot) => bootReport.parse(boot))
}

describe('simulated devices on loopback', () => {
  test('six of them become ready with every byte right, and each boot has all its phases', async () => {
    const ports = await edgePorts()
    const edge = await startLoopbackEdge(ports, [...serveArguments(files), '--json'])
    const devices = startDevices(ports, 6, 4)
    expect(await devices.ended, devices.output).toBe(0)
    const boots = await bootsOf(edge, 6)
    expect(await edge.stop()).toBe(0)
    expect(new Set(boots.map((boot) => boot.mac)).size).toBe(6)
    for (const boot of boots) {
      expect(boot.outcome).toEqual({ kind: 'ready' })
      expect(boot.simulated).toBe(true)
      expect(boot.phases.map((phase) => phase.name)).toEqual(allPhases)
      const stage2 = boot.phases.find((phase) => phase.name === 'stage2')
      // One READ each, and more where a large one was split.
      expect(stage2?.reads).toBeGreaterThanOrEqual(671)
      expect(stage2?.reads).toBeLessThan(2 * 671)
      expect(stage2?.bytesOut).toBeGreaterThan(25_841_664)
    }
  })

  test('a boot continues across kill -9 of the edge and stays one boot', async () => {
    const ports = await edgePorts()
    const args = [...serveArguments(files), '--json', '--data', path.join(scratch.path, 'data')]
    const killed = await startLoopbackEdge(ports, args)
    const devices = startDevices(ports, 2, 2)
    const journal = path.join(scratch.path, 'data', 'boots.journal')
    await streamOfBothIsOpen(journal)
    killed.kill('SIGKILL')
    await killed.ended
    const edge = await startLoopbackEdge(ports, args)
    expect(await devices.ended, devices.output).toBe(0)
    const boots = await bootsOf(edge, 2)
    await edge.stop()
    expect(killed.jsonLines()).toEqual([])
    for (const boot of boots) {
      expect(boot.outcome).toEqual({ kind: 'ready' })
      expect(boot.reconnects).toBe(1)
      expect(boot.phases.map((phase) => phase.name)).toEqual(allPhases)
    }
  })
})

/** Resolves when the journal shows that both boots read their disks. */
async function streamOfBothIsOpen(journal: string): Promise<void> {
  for (;;) {
    const text = readFileSync(journal, 'latin1')
    const reading = [...text.matchAll(/"id":"([0-9a-f-]{36})"[\s\S]{0,4000}?"reads":[1-9]/g)].map((match) => match[1])
    if (new Set(reading).size >= 2) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
