import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { bootReport, heartbeat } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bootDevices, printedBoots } from '../lib/device/simulated-devices.ts'
import { type TestMenu, versionIdOf, writeEnrolledEdge } from '../lib/edge/enrolled-edge.ts'
import {
  type EdgePorts,
  edgeAddress,
  edgePorts,
  makeBootFiles,
  patterned,
  startLoopbackEdge,
} from '../lib/edge/loopback-edge.ts'
import { importSets } from '../lib/images/boot-programs.ts'
import { markedInitramfs, x86Kernel } from '../lib/images/loader-files.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'
import type { RunningProcess } from '../lib/lab/running-process.ts'

const diskSize = 64 * 512
const release = '6.1.0-53-amd64'
const commandLine = `quiet dyndbg="file a b" it's=$x`
const menu: TestMenu = {
  timeoutMs: 5_000,
  defaultEntry: 0,
  entries: [
    { kind: 'version', title: "The user's", versionId: versionIdOf(0) },
    { kind: 'local_disk', title: 'Its own disk' },
  ],
}
const macs = Array.from({ length: 4 }, (_, index) => `02:bf:00:00:00:0${index + 1}`)
const [ofGrub = '', ofPxelinux = '', ofOwnDisk = '', ofSet = ''] = macs

const scratch = scratchDirectory()
const data = path.join(scratch.path, 'edge')
const kernel = x86Kernel(release, patterned(20_000))
let vdisk: string
let ports: EdgePorts
let edge: RunningProcess
let controlPlane: http.Server
const firstHeartbeat = Promise.withResolvers<string>()

beforeAll(async () => {
  ports = await edgePorts()
  const files = makeBootFiles(scratch.path, diskSize / 512)
  vdisk = files.vdisk
  const own = path.join(scratch.path, 'own')
  mkdirSync(own)
  writeFileSync(path.join(own, 'own.kpxe'), patterned(3000))
  importSets(files.bootFiles, ['--set', 'own', '--from', own, '--force-arch', 'bios'])
  const versions = macs.map((_, index) => {
    const folder = path.join(data, 'store', String(index))
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, 'kernel'), kernel)
    writeFileSync(path.join(folder, 'initrd'), markedInitramfs(release, 'x86_64', patterned(20_000)))
    writeFileSync(path.join(folder, 'disk'), patterned(diskSize))
    const [diskPath, kernelPath, initrdPath] = [`${index}/disk`, `${index}/kernel`, `${index}/initrd`]
    return { sizeBytes: diskSize, diskPath, kernelPath, initrdPath, commandLine, bootProgramSet: 'own' }
  })
  writeEnrolledEdge(data, macs, versions, [], menu)
  const url = await listenForHeartbeats()
  const identity = path.join(data, 'identity.json')
  writeFileSync(identity, JSON.stringify({ ...JSON.parse(readFileSync(identity, 'utf8')), url }))
  writeFileSync(path.join(data, 'edge.key'), `${'07'.repeat(32)}\n`)
  edge = await startLoopbackEdge(ports, ['--data', data, '--boot-files', files.bootFiles, '--json'])
})

afterAll(async () => {
  await edge.stop()
  controlPlane.closeAllConnections()
  controlPlane.close()
  scratch.remove()
})

/** A control plane that knows nothing, and listens to its edge's heartbeats. */
async function listenForHeartbeats(): Promise<string> {
  controlPlane = http.createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    if (request.url === '/edge/v1/heartbeat') firstHeartbeat.resolve(Buffer.concat(parts).toString())
    response.writeHead(503).end()
  })
  await new Promise<void>((listening) => controlPlane.listen(0, edgeAddress, listening))
  return `http://${edgeAddress}:${(controlPlane.address() as AddressInfo).port}`
}

const httpAt = (name: string) => `http://${edgeAddress}:${ports.http}/${name}`
const tftpAt = (name: string) => `tftp://${edgeAddress}:${ports.tftp}/${name}`
const byTftp = (name: string) => execFileSync('curl', ['-sS', tftpAt(name)])
const fetchText = async (name: string) => (await fetch(httpAt(name))).text()

/** Starts a boot by a script, as the network's own DHCP server would point to it; returns where its files are. */
async function beginBoot(mac: string): Promise<string> {
  const script = await fetchText(`m/${mac}/boot.ipxe`)
  return script.match(/b\/[0-9a-f]{16}/)?.[0] ?? ''
}

async function endOf(mac: string) {
  const boots = await printedBoots(edge, 1, (boot) => boot.mac === mac && boot.outcome !== undefined)
  return bootReport.parse(boots[0])
}

test('GRUB finds its menu under a name without a handle, and through the chosen entry what it loads', async () => {
  const folder = await beginBoot(ofGrub)
  const shown = byTftp('/grub/grub.cfg').toString()
  expect(shown).toMatch(/^set timeout=5\nset default=0\nmenuentry 'The user'\\''s' \{\n/)
  expect(byTftp(`/grub/grub.cfg-01-${ofGrub.replaceAll(':', '-')}`).toString()).toBe(shown)
  const [, entry = ''] = shown.match(/configfile \(tftp,127\.0\.0\.1\)\/(\S+-0\.cfg)/) ?? []
  expect(entry.startsWith(folder)).toBe(true)
  const chosen = byTftp(entry).toString()
  const [, kernelAt = '', words = ''] = chosen.match(/^ {2}linux \(tftp,127\.0\.0\.1\)\/(\S+) (.*)$/m) ?? []
  expect(words).toMatch(/^'quiet' 'dyndbg=file a b' 'it'\\''s=\$x' 'bootfarm\.edge=127\.0\.0\.1:\d+' /)
  expect(byTftp(kernelAt)).toEqual(kernel)
  // The choice is settled.
  expect(byTftp('/grub/grub.cfg').toString()).toBe(chosen)
  expect(await fetchText(`${folder}/grub.cfg`)).toContain(`linux (http,127.0.0.1:${ports.http})/${folder}/kernel `)
  expect((await fetch(httpAt(`${folder}/ready`), { method: 'POST' })).status).toBe(204)
  expect(await endOf(ofGrub)).toMatchObject({ outcome: { kind: 'ready' }, menuEntry: "The user's" })
})

test('a file that a loader looks for in vain ends in a clean error, and no other names are created', async () => {
  const folder = await beginBoot(ofPxelinux)
  const probes = ['/grub/x86_64-efi/command.lst', '/grub/x86_64-efi/grub.cfg', `${folder}/pxelinux.cfg/7F000001`]
  for (const name of [...probes, `${folder}/menu-00000000-9.cfg.cfg`, '/../edge.key']) {
    const { status, stderr } = spawnSync('curl', ['-sS', tftpAt(name)], { encoding: 'utf8' })
    // curl's own code for error 1.
    expect({ name, status, stderr }).toMatchObject({ status: 68 })
  }
  const config = byTftp(`${folder}/pxelinux.cfg/01-${ofPxelinux.replaceAll(':', '-')}`).toString()
  expect(config).toMatch(/^SAY {2}0 {2}The user's$/m)
  expect(config).toMatch(/^LABEL 1\n {2}CONFIG menu-[0-9a-f]{8}-1\.cfg$/m)
  expect((await fetch(httpAt(`${folder}/ready`), { method: 'POST' })).status).toBe(204)
})

test('a device that boots its own disk leaves GRUB', async () => {
  const folder = await beginBoot(ofOwnDisk)
  const shown = byTftp(`${folder}/grub.cfg`).toString()
  const [, entry = ''] = shown.match(/(b\/\S+-1\.cfg)/) ?? []
  for (let asked = 0; asked < 2; asked++) expect(byTftp(entry).toString()).toBe('set timeout=0\nexit\n')
  expect(await endOf(ofOwnDisk)).toMatchObject({ outcome: { kind: 'local_disk' }, menuEntry: 'Its own disk' })
})

test('a device gets the programs of its set, and its boot names them', async () => {
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
    ofSet,
    '--trace',
    trace,
    '--verify',
    vdisk,
    '--breather-ms',
    '1',
  ])
  expect(devices).toMatchObject([{ mac: ofSet, outcome: 'ready' }])
  const report = await endOf(ofSet)
  expect(report.program).toEqual({ set: 'own', file: 'own.kpxe' })
  expect(report.phases.find(({ name }) => name === 'nbp')?.bytesOut).toBeGreaterThan(3000)
})

test('the control plane gets the list of existing programs', async () => {
  const { bootPrograms } = heartbeat.parse(JSON.parse(await firstHeartbeat.promise))
  expect(bootPrograms).toMatchObject([
    { set: 'default', file: 'undionly.kpxe', arch: 'bios', sizeBytes: 50_000 },
    { set: 'own', file: 'own.kpxe', arch: 'bios', kind: 'program', sizeBytes: 3000, signedBy: [] },
  ])
})
