import { randomBytes } from 'node:crypto'
import { statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import type { DeviceResult } from '../device/simulated-devices.ts'
import { writeWholeTrace } from '../device/whole-trace.ts'
import { edgeProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'
import type { ControlledEdge } from './controlled-edge.ts'

interface Made {
  id: string
  jobIds: [string]
}
interface Version {
  id: string
  atEdges: { edgeId: string; state: string }[]
}

export const storeOf = (edge: ControlledEdge) => path.join(edge.data, 'store')

/** Runs a command of the edge's program on its store. */
export async function onStore(edge: ControlledEdge, command: string, args: string[]): Promise<void> {
  const running = new RunningProcess(edgeProgram, ['vdisk', command, ...args, '--store', storeOf(edge)])
  expect(await running.ended, running.output).toBe(0)
}

export async function makeStore(edge: ControlledEdge): Promise<void> {
  await onStore(edge, 'init', ['--beside-files'])
  await edge.restart()
}

export const verify = (edge: ControlledEdge, versionId: string) => onStore(edge, 'verify', ['--version', versionId])

/** Bytes that do not shrink; returns the file. */
export function writeImage(edge: ControlledEdge, name: string, size: number): string {
  const image = path.join(storeOf(edge), 'imports', `${name}.raw`)
  writeFileSync(image, randomBytes(size))
  return image
}

export const importImage = (edge: ControlledEdge, name: string) =>
  edge.api.mutate<Made>('version.import', {
    vdiskId: edge.tenant.vdiskId,
    edgeId: edge.edgeId,
    sourcePath: `imports/${name}.raw`,
    kernelPath: 'kernel',
    commandLine: 'quiet',
  })

export const vdiskNow = ({ api, tenant }: ControlledEdge) =>
  api.query<{ revision: number; versions: Version[] }>('vdisk.get', { vdiskId: tenant.vdiskId })

export async function holds(edge: ControlledEdge, versionId: string): Promise<boolean> {
  const version = (await vdiskNow(edge)).versions.find(({ id }) => id === versionId)
  return version?.atEdges.some(({ edgeId, state }) => edgeId === edge.edgeId && state === 'present') ?? false
}

export async function untilHeld(versionId: string, edges: ControlledEdge[]): Promise<void> {
  for (const edge of edges)
    while (!(await holds(edge, versionId))) {
      for (const { process } of edges) if (!process.isRunning) throw new Error(process.output)
      await pause()
    }
}

/** The edge acts on a state that gives the device this version. */
export async function untilGiven(edge: ControlledEdge, mac: string, versionId: string): Promise<void> {
  const isGiven = async () => {
    const device = (await edge.stateInForce())?.devices.find((one) => one.mac === mac)
    return device?.versionId === versionId
  }
  while (!(await isGiven())) await pause()
}

/** Boots a device that reads its whole disk, a read each `stepMs`; each byte must be the image's. */
export function bootWhole(
  edge: ControlledEdge,
  mac: string,
  { image, stepMs = 0 }: { image: string; stepMs?: number },
) {
  const trace = path.join(path.dirname(edge.data), `whole-${stepMs}.csv`)
  writeWholeTrace(trace, statSync(image).size, stepMs)
  return edge.bootDevice(mac, trace, ['--verify', image])
}

export async function untilReady(device: RunningProcess): Promise<DeviceResult> {
  expect(await device.ended, device.output).toBe(0)
  const [result] = device.jsonLines<DeviceResult>()
  if (!result) throw new Error(device.output)
  expect(result.outcome, device.output).toBe('ready')
  return result
}

export async function pause() {
  await new Promise((resolve) => setTimeout(resolve, 20))
}
