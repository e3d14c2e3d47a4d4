import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { tarOf, writeDockerArchive, writeOciLayout } from '../lib/images/container-images.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

function inScratch(name: string): string {
  return path.join(scratch.path, name)
}

const store = inScratch('store')
const layout = inScratch('layout')
const longName = `${'long'.repeat(40)}.conf`
let layers: Buffer[] = []

beforeAll(() => {
  execFileSync(edgeProgram, ['vdisk', 'init', '--store', store])
  const base = inScratch('base')
  mkdirSync(path.join(base, 'sbin'), { recursive: true })
  mkdirSync(path.join(base, 'etc/old'), { recursive: true })
  mkdirSync(path.join(base, 'usr/bin'), { recursive: true })
  writeFileSync(path.join(base, 'sbin/init'), '#!/bin/sh\n')
  chmodSync(path.join(base, 'sbin/init'), 0o755)
  writeFileSync(path.join(base, 'usr/bin/su'), patterned(300_000))
  chmodSync(path.join(base, 'usr/bin/su'), 0o4755)
  linkSync(path.join(base, 'usr/bin/su'), path.join(base, 'usr/bin/su-again'))
  symlinkSync('usr/bin', path.join(base, 'bin'))
  symlinkSync(`/etc/${longName}`, path.join(base, 'etc/link'))
  for (const name of ['gone', 'old/one', 'old/two', longName]) writeFileSync(path.join(base, 'etc', name), name)
  const hole = openSync(path.join(base, 'usr/hole'), 'w')
  ftruncateSync(hole, 9 << 20)
  writeSync(hole, patterned(8192), 0, 8192, 5 << 20)
  closeSync(hole)
  const top = inScratch('top')
  mkdirSync(path.join(top, 'etc/old'), { recursive: true })
  writeFileSync(path.join(top, 'etc/.wh.gone'), '')
  writeFileSync(path.join(top, 'etc/old/.wh..wh..opq'), '')
  writeFileSync(path.join(top, 'etc/old/three'), 'three')
  writeFileSync(path.join(top, 'etc/hostname'), 'lab\n')
  layers = [tarOf(base, inScratch('base.tar')), tarOf(top, inScratch('top.tar'))]
  writeOciLayout(layout, layers, ['tar+gzip', 'tar+zstd'])
})

function importArguments(args: string[]): string[] {
  return ['vdisk', 'import', '--store', store, '--name', 'x', ...args]
}

function imported(...args: string[]): { version: string; root: string } {
  const said = execFileSync(edgeProgram, importArguments(['--no-boot-files', ...args]), { encoding: 'utf8' })
  const version = /imported version (\S+),/.exec(said)?.[1] ?? ''
  const shown = execFileSync(edgeProgram, ['vdisk', 'show', '--json', '--store', store, '--version', version])
  return { version, root: JSON.parse(shown.toString()).manifest.root }
}

function refusal(...args: string[]): string {
  const { status, stderr } = spawnSync(edgeProgram, importArguments(args), { encoding: 'utf8' })
  expect(status, stderr).toBe(1)
  expect(stderr.trim().split('\n')).toHaveLength(1)
  return stderr
}

function debugfs(image: string, command: string): string {
  return execFileSync('debugfs', ['-R', command, image], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

describe('an image of containers becomes the disk of a machine', () => {
  test('a directory, an archive of it, and an archive of docker save give the same disk', () => {
    const archive = inScratch('layout.tar')
    execFileSync('tar', ['-cf', archive, '-C', layout, '.'])
    const docker = inScratch('docker.tar')
    writeDockerArchive(docker, layers, inScratch('docker'))
    const first = imported(layout, '--size', '256M')
    expect(imported(archive, '--size', '256M').root).toBe(first.root)
    expect(imported(docker, '--size', '256M', '--platform', 'linux/amd64').root).toBe(first.root)
    expect(imported(docker).root).not.toBe(first.root)
  })

  test('the file system is whole, and has each file as the layers leave it', () => {
    const { version } = imported(layout, '--size', '256M')
    const image = inScratch('out.raw')
    execFileSync(edgeProgram, ['vdisk', 'export', image, '--force', '--store', store, '--version', version])
    const checked = spawnSync('e2fsck', ['-fn', image], { encoding: 'utf8' })
    expect([checked.status, checked.stdout]).toEqual([0, expect.stringMatching(/Pass 5/)])
    const out = inScratch('out')
    mkdirSync(out)
    debugfs(image, `rdump / ${out}`)
    const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
    for (const name of ['usr/bin/su', 'usr/bin/su-again', 'usr/hole', 'sbin/init', `etc/${longName}`])
      expect(digest(path.join(out, name)), name).toBe(digest(path.join(inScratch('base'), name)))
    const listed = execFileSync('ls', ['-A', 'etc', 'etc/old', '.'], { cwd: out, encoding: 'utf8' })
    expect(listed.split('\n').sort().filter(Boolean)).toEqual(
      ['.:', 'etc:', 'etc/old:', 'bin', 'dev', 'etc', 'hostname', 'link', longName, 'lost+found', 'old', 'proc', 'run']
        .concat(['sbin', 'sys', 'three', 'tmp', 'usr'])
        .sort(),
    )
    expect(debugfs(image, 'stat /usr/bin/su')).toMatch(/Mode: {2}04755.*Links: 2/s)
    expect(debugfs(image, 'stat /bin')).toMatch(/Type: symlink.*Fast link dest: "usr\/bin"/s)
    // The hole takes no blocks: two of its data, counted in sectors.
    expect(debugfs(image, 'stat /usr/hole')).toMatch(/Size: 9437184.*Blockcount: 16\b/s)
  })
})

describe('what cannot become a machine is refused', () => {
  test('an image without a kernel, or without an init', () => {
    expect(refusal(layout)).toMatch(/has no kernel in \/boot or \/lib\/modules: install one in the image \(Debian:/)
    const bare = inScratch('bare')
    writeOciLayout(bare, [layers[1] as Buffer], ['tar'])
    expect(refusal(bare, '--no-boot-files')).toMatch(/has no \/sbin\/init, so it cannot boot as a machine/)
  })

  test('as a disk to look at: its sentence names the command that makes one', () => {
    const archive = inScratch('to-inspect.tar')
    writeDockerArchive(archive, layers, inScratch('to-inspect'))
    for (const image of [archive, layout]) {
      const { status, stderr } = spawnSync(edgeProgram, ['image', 'inspect', image], { encoding: 'utf8' })
      expect([status, stderr]).toEqual([1, expect.stringMatching(/is a container image: bootfarm-edge vdisk import/)])
    }
  })

  test('damage, a directory that is no layout, and options that do not belong to it', () => {
    const damaged = inScratch('damaged')
    const [file = ''] = writeOciLayout(damaged, layers, ['tar'])
    const bytes = readFileSync(file)
    bytes[4000] = (bytes[4000] ?? 0) ^ 1
    writeFileSync(file, bytes)
    expect(refusal(damaged, '--no-boot-files')).toMatch(/layer 1/)
    writeFileSync(file, bytes.subarray(0, 5000))
    expect(refusal(damaged, '--no-boot-files')).toMatch(/size than its list says|ends in the middle/)
    expect(refusal(inScratch('base'), '--no-boot-files')).toMatch(/is a directory without an index\.json/)
    expect(refusal(layout, '--size', '100', '--no-boot-files')).toMatch(/--size is a number of MiB or GiB/)
    expect(refusal(layout, '--size', '64M', '--platform', 'linux/arm64')).toMatch(/has no image for this platform/)
    const raw = inScratch('disk.raw')
    writeFileSync(raw, Buffer.alloc(1 << 20))
    expect(refusal(raw, '--size', '64M')).toMatch(/--size and --platform are for container images/)
    expect(refusal(inScratch('base.tar'))).toMatch(/is a tar archive/)
  })
})
