import { createHash } from 'node:crypto'
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { StreamDevice } from '../lib/device/stream-device.ts'
import {
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  portArguments,
  serveArguments,
} from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const running: RunningProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.stop()))
})
afterAll(() => scratch.remove())

const files = makeBootFiles(scratch.path, 64)
const disk = patterned(64 * 512)
const ports = await edgePorts()
const url = `http://${edgeAddress}:${ports.http}`
const serving = /serving on /

let data: string
let program: string
let count = 0

beforeEach(() => {
  const folder = path.join(scratch.path, `edge-${count++}`)
  data = path.join(folder, 'data')
  program = path.join(folder, 'bootfarm-edge')
  mkdirSync(folder)
  copyFileSync(edgeProgram, program)
})

/** Starts the installed program, as a service manager does. */
async function start(...options: string[]): Promise<RunningProcess> {
  const listen = ['--listen', edgeAddress, '--dhcp', 'off', '--trust-mac-from', '127.0.0.0/8', ...portArguments(ports)]
  const edge = new RunningProcess(program, ['serve', ...listen, ...serveArguments(files), '--data', data, ...options])
  running.push(edge)
  await edge.waitFor(serving)
  return edge
}

/** Puts another program in the place of the installed one. */
function install(make: (file: string) => void): void {
  make(`${program}.new`)
  renameSync(`${program}.new`, program)
}

/** Another release: the same program, and bytes after its end that nothing reads. */
function newer(file: string): void {
  copyFileSync(edgeProgram, file)
  appendFileSync(file, `release ${count}\n`)
}

const servesOf = (edge: RunningProcess) => edge.output.split('serving on ').length - 1
/** Comparing the programs themselves takes vitest a minute. */
const hashOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
const runningProgram = ({ pid }: RunningProcess) => hashOf(`/proc/${pid}/exe`)

async function exchange(edge: RunningProcess): Promise<void> {
  const before = servesOf(edge)
  edge.kill('SIGUSR2')
  await edge.waitUntil('the next start', () => (servesOf(edge) > before ? true : undefined))
}

test('a new program that serves for a while has taken over, and nothing is kept of the former one', async () => {
  const edge = await start()
  install(newer)
  await exchange(edge)
  expect(runningProgram(edge)).toBe(hashOf(program))
  expect(hashOf(path.join(data, 'former-program'))).toBe(hashOf(edgeProgram))
  await edge.waitFor(/is healthy and has taken over/)
  expect(existsSync(path.join(data, 'former-program'))).toBe(false)
  expect(existsSync(path.join(data, 'probation'))).toBe(false)
})

test('a new program that ends on probation is left for the former one, now and at later starts', async () => {
  const edge = await start()
  const device = await StreamDevice.boot(url, '02:bf:00:00:03:01')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  const former = hashOf(program)
  install(newer)
  await exchange(edge)
  edge.kill('SIGKILL')
  await edge.ended
  for (let starts = 0; starts < 2; starts++) {
    const again = await start()
    expect(runningProgram(again)).toBe(former)
    expect(await device.read(starts)).toBe('no_session')
    expect(await device.hello()).toMatchObject({ type: 'welcome' })
    expect(await device.read(starts)).toEqual(disk.subarray(starts * 512, (starts + 1) * 512))
    again.kill('SIGUSR2')
    await again.waitFor(/has failed here before, and does not take over/)
    expect(await again.stop()).toBe(0)
  }
  device.close()
  // The next release is given its chance.
  install((file) => {
    newer(file)
    appendFileSync(file, 'repaired\n')
  })
  expect(runningProgram(await start())).toBe(hashOf(program))
})

const volatileCaches = ['--write-cache', 'edge', '--write-cache-size', '1G']

/** The same program, but that `handover-formats` names another format. */
function takingOtherCaches(file: string): void {
  const lines = ['#!/bin/sh', 'test "$1" != handover-formats || { echo 4294967295; exit; }', `exec ${edgeProgram} "$@"`]
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o755 })
}

test('an exchange waits for a write cache that the next program does not take', async () => {
  const edge = await start(...volatileCaches)
  const device = await StreamDevice.boot(url, '02:bf:00:00:03:02')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  expect(await device.write(3, 7)).toBe('done')
  install(takingOtherCaches)
  edge.kill('SIGUSR2')
  await edge.waitFor(/does not take over write caches that end with this process/)
  expect(await device.read(3)).toEqual(Buffer.alloc(512, 7))
  expect(servesOf(edge)).toBe(1)
  device.close()
})

/** It cannot start where it runs: it does not find the sockets that were left for it, and the ports are in use. */
function withoutSockets(file: string): void {
  const bytes = readFileSync(edgeProgram).toString('latin1')
  expect(bytes).toContain('BOOTFARM_EDGE_SOCKETS')
  writeFileSync(file, Buffer.from(bytes.replaceAll('BOOTFARM_EDGE_SOCKETS', 'BOOTFARM_EDGE_SOCKET_'), 'latin1'), {
    mode: 0o755,
  })
}

test('a program that cannot start gives write caches back to the one before it', async () => {
  const edge = await start(...volatileCaches)
  const device = await StreamDevice.boot(url, '02:bf:00:00:03:03')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  expect(await device.write(3, 7)).toBe('done')
  const former = hashOf(program)
  install(withoutSockets)
  await exchange(edge)
  expect(edge.output).toMatch(/The new program cannot start/)
  expect(runningProgram(edge)).toBe(former)
  expect(await device.read(3)).toBe('no_session')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  expect(await device.read(3)).toEqual(Buffer.alloc(512, 7))
  // The next release takes them from there.
  install(newer)
  await exchange(edge)
  expect(runningProgram(edge)).toBe(hashOf(program))
  expect(await device.read(3)).toBe('no_session')
  expect(await device.hello()).toMatchObject({ type: 'welcome' })
  expect(await device.read(3)).toEqual(Buffer.alloc(512, 7))
  device.close()
})

test('what is no program of an edge does not take over', async () => {
  const edge = await start()
  const former = hashOf(program)
  install((file) => copyFileSync('/bin/false', file))
  edge.kill('SIGUSR2')
  await edge.waitFor(/does not start on this machine, and does not take over/)
  expect(servesOf(edge)).toBe(1)
  install((file) => copyFileSync(edgeProgram, file))
  await exchange(edge)
  expect(runningProgram(edge)).toBe(former)
})
