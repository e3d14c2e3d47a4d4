import { closeSync, ftruncateSync, openSync, readdirSync, writeSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { printedBoots } from '../lib/device/simulated-devices.ts'
import {
  type BootFiles,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  portArguments,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const store = path.join(scratch.path, 'store')
let files: BootFiles
let version = ''

async function vdisk(args: string[]): Promise<RunningProcess> {
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store])
  expect(await running.ended, running.output).toBe(0)
  return running
}

beforeAll(async () => {
  files = makeBootFiles(scratch.path, 1)
  const fd = openSync(files.vdisk, 'r+')
  ftruncateSync(fd, 16 << 20)
  for (const at of [0, 3 << 20, 15 << 20]) writeSync(fd, patterned(1 << 20), 0, 1 << 20, at)
  closeSync(fd)
  await vdisk(['init'])
  const boot = ['--kernel', files.kernel, '--initrd', files.initrd, '--cmdline', 'quiet']
  const made = await vdisk(['import', files.vdisk, '--name', 'Lab', ...boot, '--json'])
  version = made.jsonLines<{ version?: string }>().at(-1)?.version ?? ''
})
afterAll(() => scratch.remove())

async function refused(args: string[]): Promise<string> {
  const edge = new RunningProcess(edgeProgram, [
    'serve',
    '--listen',
    edgeAddress,
    '--store',
    store,
    ...portArguments(await edgePorts()),
    ...args,
  ])
  expect(await edge.ended, edge.output).toBe(1)
  return edge.output
}

test('devices boot a version out of the store, every byte right', async () => {
  const ports = await edgePorts()
  const args = ['--store', store, '--version', version, '--boot-files', files.bootFiles, '--json']
  const edge = await startLoopbackEdge(ports, args)
  const devices = new RunningProcess(simProgram, [
    'boot',
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(ports.dhcp),
    '--tftp-port',
    String(ports.tftp),
    '--devices',
    '2',
    '--verify',
    files.vdisk,
    '--json',
  ])
  expect(await devices.ended, devices.output).toBe(0)
  const boots = (await printedBoots(edge, 2)) as { outcome: { kind: string } }[]
  expect(boots.map((boot) => boot.outcome.kind)).toEqual(['ready', 'ready'])
  // A version that is served cannot be deleted.
  const deleting = new RunningProcess(edgeProgram, ['vdisk', 'delete', '--store', store, '--version', version])
  expect(await deleting.ended).toBe(4)
  expect(deleting.output).toMatch(/is in use: an edge serves it/)
  expect(await edge.stop()).toBe(0)
})

test('a missing version, and a kernel that differs from the sealed one, are refused by name', async () => {
  const absent = '6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff'
  expect(await refused(['--version', absent])).toMatch(/version .* is not in the store/)
  const bundles = path.join(store, 'boot-bundles')
  for (const name of readdirSync(bundles)) {
    const fd = openSync(path.join(bundles, name), 'r+')
    writeSync(fd, 'x', 1000)
    closeSync(fd)
  }
  expect(await refused(['--version', version])).toMatch(/has a damaged kernel or initramfs/)
})
