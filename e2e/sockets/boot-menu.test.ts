import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { bootReport } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { versionIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  type BootFiles,
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { SlowFiles, slowFilesMissing } from '../lib/edge/slow-files.ts'
import { markedInitramfs, x86Kernel } from '../lib/images/loader-files.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const diskSize = 64 * 512
const release = '6.1.0-53-amd64'
/** Their lengths differ. */
const kernels = [0, 1].map((index) => x86Kernel(release, patterned(20_000 + 512 * index)))
const entries = {
  first: 0,
  second: 1,
  missing: 2,
  ownDisk: 3,
}
const menu = {
  timeoutMs: 5_000,
  defaultEntry: entries.second,
  entries: [
    { kind: 'version' as const, title: 'The first', versionId: versionIdOf(0) },
    { kind: 'version' as const, title: 'The second || shell', versionId: versionIdOf(1) },
    { kind: 'version' as const, title: 'Elsewhere', versionId: versionIdOf(77) },
    { kind: 'local_disk' as const, title: 'Its own disk' },
  ],
}
const macs = Array.from({ length: 6 }, (_, index) => `02:bf:00:00:00:0${index + 1}`)
/** The first two have their own versions, which the menu overrules. */
const [ofDefault = '', ofChoice = '', ofMissing = '', ofOwnDisk = '', ofOldMenu = '', byTftp = ''] = macs

const scratch = scratchDirectory()
const data = path.join(scratch.path, 'edge')
let ports: EdgePorts
let files: BootFiles
let edge: RunningProcess

const start = () => startLoopbackEdge(ports, ['--data', data, '--boot-files', files.bootFiles, '--json'])

beforeAll(async () => {
  ports = await edgePorts()
  files = makeBootFiles(scratch.path, diskSize / 512)
  const versions = kernels.map((kernel, index) => {
    const folder = path.join(data, 'store', String(index))
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, 'kernel'), kernel)
    writeFileSync(path.join(folder, 'initrd'), markedInitramfs(release, 'x86_64', patterned(20_000)))
    writeFileSync(path.join(folder, 'disk'), patterned(diskSize))
    const [diskPath, kernelPath, initrdPath] = [`${index}/disk`, `${index}/kernel`, `${index}/initrd`]
    return { sizeBytes: diskSize, diskPath, kernelPath, initrdPath, commandLine: 'quiet' }
  })
  writeEnrolledEdge(data, macs, versions, [], menu)
  edge = await start()
})

afterAll(async () => {
  await edge.stop()
  scratch.remove()
})

/**
 * Fetches the script that a device gets, and the URL at which it answers with an entry's number in place of a variable.
 */
async function scriptAt(url: string): Promise<{ script: string; answerAt: (entry: number) => string }> {
  const script = await (await fetch(url)).text()
  const [, address = ''] = script.match(/^chain \S+ \S+ (http:\S+)/m) ?? []
  return { script, answerAt: (entry) => address.replace(variable, String(entry)) }
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of iPXE.
const variable = '${bootfarm_entry}'
const entranceOf = (mac: string) => `http://${edgeAddress}:${ports.http}/m/${mac}/boot.ipxe`
const bytesAt = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer())

async function endOf(mac: string) {
  const boots = await printedBoots(edge, 1, (boot) => boot.mac === mac && boot.outcome !== undefined)
  return bootReport.parse(boots[0])
}

test('a device whose menu times out boots the default entry, regardless of its assigned version', async () => {
  const trace = path.join(scratch.path, 'trace.csv')
  writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n')
  const { devices } = await bootDevices([
    '--server',
    edgeAddress,
    '--dhcp-port',
    String(ports.dhcp),
    '--tftp-port',
    String(ports.tftp),
    '--devices',
    '1',
    '--first-mac',
    ofDefault,
    '--trace',
    trace,
    '--verify',
    files.vdisk,
    '--breather-ms',
    '1',
  ])
  expect(devices).toMatchObject([{ mac: ofDefault, outcome: 'ready' }])
  expect(await endOf(ofDefault)).toMatchObject({
    versionId: versionIdOf(1),
    menuEntry: 'The second || shell',
    outcome: { kind: 'ready' },
  })
})

test('the chosen entry is loaded, even when the edge is killed as soon as it has answered', async () => {
  const { script, answerAt } = await scriptAt(entranceOf(ofChoice))
  expect(script).toContain("item 1 The second '||' shell\n")
  expect(script).toContain('item 2 Elsewhere (not at this edge)\n')
  expect(script).toContain('choose --timeout 5000 --default 1 ')
  const chosen = await (await fetch(answerAt(entries.first))).text()
  const [, kernelAt = ''] = chosen.match(/^kernel (\S+)/m) ?? []
  edge.kill('SIGKILL')
  // The answer to a choice waits for its record (docs/decisions/0030-the-journal-by-a-worker.md).
  expect(readFileSync(path.join(data, 'boots.journal'), 'latin1')).toContain('The first')
  await edge.ended
  edge = await start()
  expect(await bytesAt(kernelAt)).toEqual(kernels[0])
  // The choice is settled: the menu is not shown again.
  const again = await (await fetch(answerAt(entries.second))).text()
  expect(again).toMatch(/^kernel /m)
  expect(await bytesAt(kernelAt)).toEqual(kernels[0])
  const [, reportAt = ''] = chosen.match(/ bootfarm\.report=(\S+)/) ?? []
  expect((await fetch(`${reportAt}/ready`, { method: 'POST' })).status).toBe(204)
  const boot = await endOf(ofChoice)
  expect(boot).toMatchObject({
    versionId: versionIdOf(0),
    menuEntry: 'The first',
    outcome: { kind: 'ready' },
  })
})

const slowMissing = slowFilesMissing()
test.skipIf(slowMissing)(
  `an entry chosen by TFTP is kept before its answer leaves, however slow the disk is${slowMissing ? ` (${slowMissing})` : ''}`,
  async () => {
    const { answerAt } = await scriptAt(entranceOf(byTftp))
    const asked = new URL(answerAt(entries.first))
    const handle = asked.pathname.split('/')[2]
    const config = `menu-${asked.searchParams.get('menu')}-${entries.first}.cfg`
    const timesKept = () => readFileSync(path.join(data, 'boots.journal'), 'latin1').split('"The first"').length
    const before = timesKept()
    const disk = await SlowFiles.of(edge, 200, path.join(scratch.path, 'choice.calls'))
    const { stdout } = await promisify(execFile)('curl', [
      '-sS',
      `tftp://${edgeAddress}:${ports.tftp}/b/${handle}/${config}`,
    ])
    edge.kill('SIGKILL')
    expect(timesKept()).toBeGreaterThan(before)
    await edge.ended
    await disk.end()
    expect(stdout).toMatch(/\bkernel\b/)
    edge = await start()
    const again = await (await fetch(answerAt(entries.second))).text()
    expect(again).toMatch(/^kernel /m)
  },
)

test('an entry whose version this edge lacks ends in a sentence and its cause', async () => {
  const { answerAt } = await scriptAt(entranceOf(ofMissing))
  const refusal = await (await fetch(answerAt(entries.missing))).text()
  expect(refusal).toContain('echo bootfarm: the desired state does not describe this version\n')
  expect(await endOf(ofMissing)).toMatchObject({
    menuEntry: 'Elsewhere',
    outcome: { kind: 'failed', phase: 'loader', cause: 'version_missing' },
  })
})

test('a device that goes to its own disk leaves the edge, also when it asks twice', async () => {
  const { answerAt } = await scriptAt(entranceOf(ofOwnDisk))
  const leaving = await (await fetch(answerAt(entries.ownDisk))).text()
  expect(leaving).toContain('sanboot --no-describe --drive 0x80')
  expect(await (await fetch(answerAt(entries.ownDisk))).text()).toBe(leaving)
  const boot = await endOf(ofOwnDisk)
  expect(boot).toMatchObject({ menuEntry: 'Its own disk', outcome: { kind: 'local_disk' } })
  expect(boot.versionId).toBeUndefined()
})

test('an answer from an outdated menu shows the current menu', async () => {
  const { answerAt } = await scriptAt(entranceOf(ofOldMenu))
  const url = new URL(answerAt(entries.ownDisk))
  url.searchParams.set('menu', '0badcafe')
  const { script } = await scriptAt(url.href)
  expect(script).toContain('menu Bootfarm: the menu has changed, choose again')
})
