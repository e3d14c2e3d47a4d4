import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reservedKib, slabsKib } from '../lib/assert/memory.ts'
import { type BootFiles, makeBootFiles, serveArguments } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'
import { namespacesMissing, Segment } from '../lib/lab/segment.ts'

const clientIp = '10.78.0.9'
const falseAddresses = '10.81.0.0/16'
const seconds = 2
/** How many bytes one address may draw from the edge beyond what it sent: 64 KiB, then 8 KiB a second. */
const allowance = (addresses: number) => addresses * (64 * 1024 + seconds * 8 * 1024)
const missing = namespacesMissing()
const scratch = scratchDirectory()
let segment: Segment
let edge: RunningProcess
let files: BootFiles

interface Flood {
  requests: number
  requestBytes: number
  answers: number
  answerBytes: number
}

describe.skipIf(missing)(`TFTP requests from spoofed addresses${missing ? ` (${missing})` : ''}`, () => {
  beforeAll(async () => {
    segment = new Segment('tftpflood')
    segment.addDeviceAddress(9)
    segment.addFalseAddresses(falseAddresses, clientIp)
    files = makeBootFiles(scratch.path, 64)
    const serve = ['serve', '--listen', segment.edgeIp, '--dhcp', 'off', ...serveArguments(files)]
    edge = segment.startOnEdge(edgeProgram, serve)
    await edge.waitFor(/serving on/)
  })

  afterAll(async () => {
    await edge?.stop()
    segment?.remove()
    scratch.remove()
  })

  function flood(...more: string[]): RunningProcess {
    const args = ['--server', segment.edgeIp, '--file', 'undionly.kpxe', '--seconds', String(seconds)]
    return segment.startOnSwitch(simProgram, ['tftp-flood', ...args, ...more])
  }

  async function resultOf(running: RunningProcess): Promise<Flood> {
    expect(await running.ended, running.output).toBe(0)
    return running.jsonLines<Flood>()[0] as Flood
  }

  async function getProgram(): Promise<void> {
    const program = readFileSync(path.join(files.bootFiles, 'undionly.kpxe'))
    const args = ['--server', segment.edgeIp, '--file', 'undionly.kpxe', '--windowsize', '4']
    const client = segment.startOnSwitch(simProgram, ['tftp-get', ...args])
    expect(await client.ended, client.output).toBe(0)
    const sha256 = createHash('sha256').update(program).digest('hex')
    expect(client.jsonLines<{ sha256: string }>()[0]?.sha256).toBe(sha256)
  }

  test('draw little more than their own bytes, take no new memory, and keep no client out', async () => {
    await getProgram()
    const before = reservedKib(edge.pid)
    // As fast as this machine can.
    await resultOf(flood('--sources', falseAddresses, '--rate', '0'))
    const running = flood('--sources', falseAddresses, '--rate', '20000')
    let served = 0
    while (running.isRunning) {
      await getProgram()
      served += 1
    }
    const result = await resultOf(running)
    expect(result.requests).toBeGreaterThan(10_000)
    expect(result.answers).toBeLessThanOrEqual(result.requests)
    // An OACK is shorter than the request; only the file size may be longer than the 0 that stood for it.
    expect(result.answerBytes).toBeLessThanOrEqual(result.requestBytes + result.requests * 20)
    expect(reservedKib(edge.pid)).toBeLessThanOrEqual(before + slabsKib)
    expect(served).toBeGreaterThan(0)
  })

  test('aimed at one victim bring it no more than its allowance', async () => {
    const result = await resultOf(flood('--sources', '10.81.7.7/32', '--plain', '--rate', '0'))
    expect(result.requests).toBeGreaterThan(10_000)
    expect(result.answers).toBeGreaterThan(0)
    expect(result.answerBytes).toBeLessThanOrEqual(result.requestBytes + allowance(1))
    expect(result.answerBytes).toBeLessThanOrEqual(2 * allowance(1))
  })
})
