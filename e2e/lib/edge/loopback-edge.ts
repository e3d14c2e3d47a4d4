import { mkdirSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { x86Kernel } from '../images/loader-files.ts'
import { edgeProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'

export const edgeAddress = '127.0.0.1'
const bootProgramSize = 50_000
/** Nothing proves a MAC address on loopback: devices made of raw packets may name any. */
export const trustLoopback = ['--trust-mac-from', '127.0.0.0/8']

export interface EdgePorts {
  dhcp: number
  pxe: number
  tftp: number
  http: number
  stream: number
  peer: number
}

export async function edgePorts(): Promise<EdgePorts> {
  const [dhcp = 0, pxe = 0, tftp = 0, http = 0, stream = 0, peer = 0] = await freePorts(6)
  return { dhcp, pxe, tftp, http, stream, peer }
}

export function portArguments(ports: EdgePorts): string[] {
  return Object.entries(ports).flatMap(([name, port]) => [`--${name}-port`, String(port)])
}

export interface BootFiles {
  vdisk: string
  kernel: string
  initrd: string
  bootFiles: string
}

/** Makes a vDisk of `sectors` sectors in which all bytes differ, and small files to boot it. */
export function makeBootFiles(directory: string, sectors: number): BootFiles {
  const files = {
    vdisk: path.join(directory, 'disk.raw'),
    kernel: path.join(directory, 'kernel'),
    initrd: path.join(directory, 'initrd'),
    bootFiles: path.join(directory, 'boot-files'),
  }
  mkdirSync(files.bootFiles, { recursive: true })
  writeFileSync(files.vdisk, patterned(sectors * 512))
  writeFileSync(files.kernel, x86Kernel('6.1.0-1-simulated', patterned(300_001)))
  writeFileSync(files.initrd, patterned(200_003))
  writeFileSync(path.join(files.bootFiles, 'undionly.kpxe'), patterned(bootProgramSize))
  return files
}

/** Returns bytes of which no two blocks are equal. */
export function patterned(size: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at + 4 <= size; at += 4) bytes.writeUInt32BE(Math.imul(at, 2654435761) >>> 0, at)
  return bytes
}

export function serveArguments(files: BootFiles): string[] {
  return ['--vdisk', files.vdisk, '--kernel', files.kernel, '--initrd', files.initrd, '--boot-files', files.bootFiles]
}

/** Starts `bootfarm-edge serve` on loopback and waits until it answers. */
export async function startLoopbackEdge(ports: EdgePorts, args: string[]): Promise<RunningProcess> {
  const edge = new RunningProcess(edgeProgram, [
    'serve',
    '--listen',
    edgeAddress,
    '--dhcp',
    'server',
    '--dhcp-pool',
    '127.77.1.10-127.77.1.99',
    ...trustLoopback,
    ...portArguments(ports),
    ...args,
  ])
  await untilListening(edge, ports.http)
  return edge
}

/** Resolves when the port accepts connections; fails when the process ends first. */
export async function untilListening(edge: RunningProcess, port: number): Promise<void> {
  while (!(await canConnect(port))) {
    if (!edge.isRunning) throw new Error(`the edge ended before it listened:\n${edge.output}`)
  }
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, edgeAddress, () => {
      socket.destroy()
      resolve(true)
    })
    // A refused connection returns at once; the short pause keeps the wait from spinning.
    socket.once('error', () => setTimeout(() => resolve(false), 20))
  })
}

/** Reads an edge's metrics by name, without those that have labels. */
export async function edgeFigures(port: number): Promise<Record<string, number>> {
  const text = await (await fetch(`http://${edgeAddress}:${port}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line && !line.startsWith('#') && !line.includes('{'))
  return Object.fromEntries(
    lines.map((line) => line.split(' ') as [string, string]).map(([name, value]) => [name, Number(value)]),
  )
}
