import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type BootFiles,
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  serveArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const run = promisify(execFile)
const mib = 1 << 20
/** Beyond 32 bits; nearly all of it is a hole. */
const diskSize = 5 * 1024 * mib + 512
const mac = '02:bf:00:00:00:01'

const scratch = scratchDirectory()
let ports: EdgePorts
let files: BootFiles
let edge: RunningProcess
let origin: string
/** The URL of one boot, which continues during all tests. */
let base: string
/** An edge whose version has no kernel: only such a disk is served by HTTP. */
let diskEdge: RunningProcess
let diskUrl: string

beforeAll(async () => {
  ports = await edgePorts()
  files = makeBootFiles(scratch.path, 4096)
  writeFileSync(path.join(files.bootFiles, 'ipxe.efi'), 'an EFI program')
  const disk = openSync(files.vdisk, 'r+')
  writeSync(disk, 'the end of the disk', diskSize - 512)
  writeSync(disk, Buffer.alloc(1), 0, 1, diskSize - 1)
  closeSync(disk)
  edge = await startLoopbackEdge(ports, serveArguments(files))
  origin = `http://${edgeAddress}:${ports.http}`
  const script = await (await fetch(`${origin}/m/${mac}/boot.ipxe`)).text()
  base = script.match(/ bootfarm\.report=(\S+)/)?.[1] ?? ''
  const diskPorts = await edgePorts()
  diskEdge = await startLoopbackEdge(diskPorts, ['--vdisk', files.vdisk, '--boot-files', files.bootFiles])
  const diskScript = await (await fetch(`http://${edgeAddress}:${diskPorts.http}/m/${mac}/boot.ipxe`)).text()
  diskUrl = diskScript.match(/^sanboot --no-describe (\S+\/disk)$/m)?.[1] ?? ''
})

afterAll(async () => {
  await Promise.all([edge.stop(), diskEdge.stop()])
  scratch.remove()
})

/** Runs curl; returns its standard output. */
async function curl(...args: string[]): Promise<Buffer> {
  const { stdout } = await run('curl', ['-sS', ...args], { encoding: 'buffer', maxBuffer: 64 * mib })
  return stdout
}

const sumOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('curl and wget', () => {
  test('get every byte of the published files', async () => {
    const initrd = readFileSync(files.initrd)
    expect(sumOf(await curl(`${base}/initrd`))).toBe(sumOf(initrd))
    const { stdout } = await run('busybox', ['wget', '-q', '-O', '-', `${base}/initrd`], {
      encoding: 'buffer',
      maxBuffer: mib,
    })
    expect(sumOf(stdout)).toBe(sumOf(initrd))
    const head = (await curl('-I', diskUrl)).toString()
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(head).toContain(`content-length: ${diskSize}\r\n`)
    expect(head).toContain('accept-ranges: bytes\r\n')
    expect((await curl('-I', `${origin}/ipxe.efi`)).toString()).toContain('content-type: application/efi\r\n')
  })

  test.for([
    { range: '0-0', at: 0, size: 1 },
    { range: '511-1537', at: 511, size: 1027 },
    { range: `${2 ** 32 - 3}-${2 ** 32 + 5}`, at: 2 ** 32 - 3, size: 9 },
    { range: `${diskSize - 512}-`, at: diskSize - 512, size: 512 },
    { range: `${diskSize - 1}-${diskSize + 4096}`, at: diskSize - 1, size: 1 },
    { range: '-512', at: diskSize - 512, size: 512 },
  ])('get the bytes $range of a disk larger than 4 GiB', async ({ range, at, size }) => {
    const answer = await curl('-i', '-r', range, diskUrl)
    const bodyAt = answer.indexOf('\r\n\r\n') + 4
    const head = answer.subarray(0, bodyAt).toString()
    expect(head).toMatch(/^HTTP\/1\.1 206 /)
    expect(head).toContain(`content-range: bytes ${at}-${at + size - 1}/${diskSize}\r\n`)
    expect(answer.subarray(bodyAt)).toEqual(bytesOf(files.vdisk, at, size))
  })

  test('get an error for a range that does not exist, and a condition never selects one', async () => {
    const beyond = (await curl('-i', '-r', `${diskSize}-`, diskUrl)).toString()
    expect(beyond).toMatch(/^HTTP\/1\.1 416 /)
    expect(beyond).toContain(`content-range: bytes */${diskSize}\r\n`)
    const conditional = await curl('-r', '0-1', '-H', 'If-Range: "x"', `${base}/kernel`)
    expect(sumOf(conditional)).toBe(sumOf(readFileSync(files.kernel)))
    const ofText = await curl('-r', '2-5', `${origin}/boot.ipxe`)
    expect(ofText.toString()).toBe('ipxe')
    expect((await curl('-r', '0-1,4-5', `${origin}/boot.ipxe`)).toString()).toMatch(/^#!ipxe\n/)
  })

  test('read 578 ranges over one connection, as a loader reads a disk', async () => {
    const ranges = Array.from({ length: 578 }, (_, index) => ({
      at: (index * 977 * 512) % mib,
      size: 512 * (1 + (index % 63)),
    }))
    const told = 'write-out = "%{stderr}%{num_connects} "'
    const config = ranges.map(
      ({ at, size }) => `url = ${diskUrl}\nrange = ${at}-${at + size - 1}\noutput = -\n${told}\n`,
    )
    const file = path.join(scratch.path, 'ranges')
    writeFileSync(file, config.join('next\n'))
    const { stdout, stderr } = await run('curl', ['-sS', '-K', file], {
      encoding: 'buffer',
      maxBuffer: 64 * mib,
    })
    const wanted = Buffer.concat(ranges.map(({ at, size }) => bytesOf(files.vdisk, at, size)))
    expect(sumOf(stdout)).toBe(sumOf(wanted))
    const connects = stderr.toString().trim().split(' ').map(Number)
    expect(connects).toHaveLength(ranges.length)
    expect(connects.reduce((sum, count) => sum + count)).toBe(1)
  })

  test('a hundred connections at once get every byte', async () => {
    const output = path.join(scratch.path, 'parallel-#1')
    await curl('--parallel', '--parallel-immediate', '--parallel-max', '100', '-o', output, `${base}/kernel?[1-100]`)
    const wanted = sumOf(readFileSync(files.kernel))
    for (let index = 1; index <= 100; index++)
      expect(sumOf(readFileSync(path.join(scratch.path, `parallel-${index}`)))).toBe(wanted)
  })
})

describe('a disk', () => {
  test('is not served by HTTP if its version has a kernel, or to another address', async () => {
    const ofKernel = await fetch(`${base}/disk`)
    expect(ofKernel.status).toBe(404)
    expect(await ofKernel.text()).toMatch(/^This version has a kernel: its disk is read by the stream/)
    const elsewhere = (await curl('-i', '--interface', '127.0.7.9', diskUrl)).toString()
    expect(elsewhere).toMatch(/^HTTP\/1\.1 403 /)
    expect(elsewhere).toMatch(/This disk is served only to the address of the device that boots it\.\n$/)
    expect((await curl('-r', '0-511', diskUrl)).length).toBe(512)
  })
})

describe('slow and idle clients', () => {
  test('a thousand idle connections and a slow reader keep nobody else from a file', async () => {
    // One address may have 256.
    const addresses = ['127.0.7.1', '127.0.7.2', '127.0.7.3', '127.0.7.4']
    const idle = await Promise.all(
      Array.from({ length: 1000 }, (_, index) => connected(addresses[index % addresses.length] ?? '')),
    )
    const slow = run('curl', ['-sS', '--limit-rate', '20k', '-o', '/dev/null', '-r', '0-9999999', `${base}/initrd`])
    slow.catch(() => undefined)
    expect(sumOf(await curl('--max-time', '20', `${base}/initrd`))).toBe(sumOf(readFileSync(files.initrd)))
    slow.child.kill()
    for (const socket of idle) socket.destroy()
  })
})

async function connected(localAddress: string): Promise<net.Socket> {
  const socket = net.connect({ host: edgeAddress, port: ports.http, localAddress })
  await once(socket, 'connect')
  socket.resume()
  return socket
}

function bytesOf(file: string, at: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  const fd = openSync(file, 'r')
  readSync(fd, bytes, 0, size, at)
  closeSync(fd)
  return bytes
}
