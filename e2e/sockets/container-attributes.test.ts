import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { writeOciLayout } from '../lib/images/container-images.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

/** Files of devices are made, and the disk is mounted. */
const missing = process.getuid?.() === 0 ? undefined : 'needs root'
const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const inScratch = (...names: string[]) => path.join(scratch.path, ...names)
const run = (program: string, ...args: string[]) => execFileSync(program, args, { maxBuffer: 1 << 26 })
const longName = 'n'.repeat(255)
const longFolder = Array.from({ length: 12 }, (_, index) => `${index}-${'folder'.repeat(16)}`).join('/')

const everything = ['--sort=name', '--acls', '--xattrs', '--xattrs-include=*', '--numeric-owner', '--format=pax']
const noOwnTimes = '--pax-option=delete=atime,delete=ctime,exthdr.name=%d/x/%f'
const layerOf = (tree: string, ...options: string[]) =>
  run('tar', ...everything, noOwnTimes, ...options, '-c', '-C', tree, '.')

/** All that a tree has, except its attributes; equal trees give equal bytes. */
const contentOf = (tree: string) =>
  run(
    'tar',
    '--sort=name',
    '--numeric-owner',
    '--format=pax',
    noOwnTimes,
    '--exclude=./lost+found',
    '-c',
    '-C',
    tree,
    '.',
  )

/** Prints all attributes of a tree, access rights among them. */
const listAttributes = `
import os, sys
os.chdir(sys.argv[1])
for folder, folders, files in sorted(os.walk('.')):
    for path in [folder] + sorted(os.path.join(folder, name) for name in files):
        for name in sorted(os.listxattr(path, follow_symlinks=False)):
            print(path, name, os.getxattr(path, name, follow_symlinks=False).hex())
`

/**
 * Access rights and attributes as the kernel takes them (acl(5), `struct posix_acl_xattr_entry`): the packages acl and
 * attr are not everywhere.
 */
const attributes = `
import os, struct, sys
ANY = 0xffffffff
def rights(*entries):
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *one) for one in entries)
os.chdir(sys.argv[1])
base = lambda user, group, other: [(1, user, ANY), (4, group, ANY), (0x20, other, ANY)]
os.setxattr('etc/shared', 'system.posix_acl_access',
    rights((1, 6, ANY), (2, 7, 1000), (2, 4, 70000), (4, 4, ANY), (8, 5, 33), (0x10, 7, ANY), (0x20, 4, ANY)))
os.setxattr('srv', 'system.posix_acl_default',
    rights((1, 7, ANY), (2, 5, 1234), (4, 5, ANY), (0x10, 5, ANY), (0x20, 0, ANY)))
os.setxattr('usr/bin/ping', 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000'))
os.setxattr('etc/shared', 'user.large', bytes(range(256)) * 11)
os.setxattr('etc/shared', 'user.with=equals%', b'')
os.setxattr('etc', 'trusted.overlay.origin', b'below')
`

/** Gives a file a list of access rights that names this user. */
const giveRights = `
import os, struct, sys
entries = [(1, 6, 0xffffffff), (2, 5, int(sys.argv[2])), (4, 4, 0xffffffff), (0x10, 7, 0xffffffff), (0x20, 4, 0xffffffff)]
os.setxattr(sys.argv[1], 'system.posix_acl_access', struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *one) for one in entries))
`

function makeTree(tree: string): void {
  for (const folder of ['dev', 'etc/kept', 'proc', 'run', 'sbin', 'srv', 'sys', 'tmp', 'usr/bin', longFolder])
    mkdirSync(path.join(tree, folder), { recursive: true })
  const write = (name: string, content: string | Buffer) => writeFileSync(path.join(tree, name), content)
  write('sbin/init', '#!/bin/sh\n')
  run('chmod', '755', path.join(tree, 'sbin/init'))
  for (const name of ['etc/shared', 'usr/bin/ping', `${longFolder}/${longName}`, 'etc/kept/below']) write(name, name)
  for (const node of ['console c 5 1', 'big c 300 70000', 'disk b 8 0', 'pipe p']) {
    const [name = '', ...kind] = node.split(' ')
    run('mknod', path.join(tree, 'dev', name), ...kind)
  }
  run('chown', '100000:70001', path.join(tree, 'etc/shared'))
  run('chmod', '6711', path.join(tree, 'usr/bin/ping'))
  run('chmod', '1777', path.join(tree, 'tmp'))
  run('ln', '-s', 't'.repeat(1000), path.join(tree, 'etc/far'))
  linkSync(path.join(tree, 'usr/bin/ping'), path.join(tree, 'usr/bin/ping6'))
  makeHoles(path.join(tree, 'srv/holes'), 40)
  run('python3', '-c', attributes, tree)
}

/** A file with this many pieces and holes between them, and one at its end: more than GNU's header has places for. */
function makeHoles(file: string, count: number): void {
  const descriptor = openSync(file, 'w')
  ftruncateSync(descriptor, 20 << 20)
  for (let index = 0; index < count; index += 1)
    writeSync(descriptor, patterned(5000), 0, 5000, index * (512 << 10) + (index % 3) * 4096)
  closeSync(descriptor)
}

const sameTimes = (tree: string) =>
  run('find', tree, '-type', 'd', '-exec', 'touch', '-d', '@1700000000.125', '{}', '+')

/** What is there at the end, and two layers that lead to it: files replaced, hidden, and linked across layers. */
function makeLayers(): Buffer[] {
  const [want, first, second] = ['want', 'first', 'second'].map((name) => inScratch(name)) as [string, string, string]
  makeTree(want)
  run('cp', '-a', want, first)
  mkdirSync(path.join(first, 'var/gone/deep'), { recursive: true })
  for (const name of ['var/gone/deep/file', 'etc/hidden', 'etc/kept/old']) writeFileSync(path.join(first, name), name)
  writeFileSync(path.join(first, 'etc/kept/below'), 'what a lower layer has there')
  mkdirSync(path.join(second, 'etc/kept'), { recursive: true })
  mkdirSync(path.join(second, 'usr/bin'), { recursive: true })
  for (const name of ['.wh.var', 'etc/.wh.hidden', 'etc/kept/.wh..wh..opq']) writeFileSync(path.join(second, name), '')
  // An entry of a directory has all of its properties.
  run('cp', '-a', '--attributes-only', path.join(want, 'etc'), `${second}/`)
  for (const name of ['shared', 'far']) rmSync(path.join(second, 'etc', name))
  run('cp', '-a', path.join(want, 'etc/kept/below'), path.join(second, 'etc/kept/below'))
  run('cp', '-a', path.join(want, 'usr/bin/ping'), path.join(second, 'usr/bin/ping'))
  linkSync(path.join(second, 'usr/bin/ping'), path.join(second, 'usr/bin/ping-again'))
  linkSync(path.join(want, 'usr/bin/ping'), path.join(want, 'usr/bin/ping-again'))
  for (const tree of [want, first, second]) sameTimes(tree)
  const upper = inScratch('second.tar')
  writeFileSync(upper, layerOf(second))
  // What is left of it is a link to a file of the layer below.
  run('tar', '--delete', '-f', upper, './usr/bin/ping')
  return [layerOf(first, '--sparse'), readFileSync(upper)]
}

describe.skipIf(missing)(`what layers say of files${missing ? ` (${missing})` : ''}`, () => {
  const layout = inScratch('layout')
  const store = inScratch('store')
  let layers: Buffer[] = []
  let holder: RunningProcess | undefined
  beforeAll(() => {
    layers = makeLayers()
    writeOciLayout(layout, layers, ['tar+gzip', 'tar+zstd'])
    execFileSync(edgeProgram, ['vdisk', 'init', '--store', store])
  })
  afterAll(() => holder?.stop())

  function vdisk(...args: string[]) {
    return spawnSync(edgeProgram, ['vdisk', ...args], { encoding: 'utf8' })
  }

  function imported(from: string): string {
    const words = ['import', from, '--store', store, '--name', 'x', '--no-boot-files', '--size', '64M']
    const { status, stdout, stderr } = vdisk(...words)
    expect(status, stderr).toBe(0)
    return /imported version (\S+),/.exec(stdout)?.[1] ?? ''
  }

  /** Exports a version, has it checked, and mounts it. */
  function mounted(version: string, look: (tree: string) => void): void {
    const image = inScratch(`${version}.raw`)
    execFileSync(edgeProgram, ['vdisk', 'export', image, '--store', store, '--version', version])
    const checked = spawnSync('e2fsck', ['-fn', image], { encoding: 'utf8' })
    expect([checked.status, checked.stdout]).toEqual([0, expect.stringMatching(/Pass 5/)])
    const tree = inScratch(version)
    mkdirSync(tree)
    run('mount', '-o', 'ro,loop', image, tree)
    try {
      look(tree)
    } finally {
      run('umount', tree)
    }
    rmSync(image)
  }

  const attributesOf = (tree: string) => run('python3', '-c', listAttributes, tree).toString().trim()

  test('is on the disk: rights, attributes, devices, holes, long names, links across layers', () => {
    const want = inScratch('want')
    const listed = (tree: Buffer) => spawnSync('tar', ['-tv', '--full-time'], { input: tree, encoding: 'utf8' }).stdout
    mounted(imported(layout), (tree) => {
      const [found, wanted] = [contentOf(tree), contentOf(want)]
      expect(listed(found)).toBe(listed(wanted))
      expect(found.equals(wanted), 'every byte').toBe(true)
      expect(attributesOf(want).split('\n')).toHaveLength(8)
      expect(attributesOf(tree)).toBe(attributesOf(want))
      const holes = run('stat', '-c', '%b', path.join(tree, 'srv/holes')).toString()
      expect(Number(holes) * 512, 'holes take no space').toBeLessThan(1 << 20)
    })
  })

  test('rights that an archive has as a text are kept, and refused where a name has no number', () => {
    const tree = inScratch('texts')
    mkdirSync(path.join(tree, 'sbin'), { recursive: true })
    writeFileSync(path.join(tree, 'sbin/init'), '')
    const give = (user: number) => run('python3', '-c', giveRights, path.join(tree, 'sbin/init'), String(user))
    const layer = (name: string) => {
      const from = inScratch(name)
      writeOciLayout(from, [run('tar', '--acls', '--format=pax', '-c', '-C', tree, '.')], ['tar'])
      return from
    }
    give(70000)
    mounted(imported(layer('numbers')), (disk) => expect(attributesOf(disk)).toBe(attributesOf(tree)))
    // Each Debian has this user.
    give(1)
    const refused = vdisk('import', layer('named'), '--store', store, '--name', 'x', '--no-boot-files')
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringMatching(/by name.*--xattrs-include=\*/)])
  })

  test('an import whose store is full resumes, and gives the same version', async () => {
    const hidden = inScratch('full')
    mkdirSync(hidden)
    const script = 'mount -t tmpfs -o size=12m tmpfs "$0" && echo mounted && exec cat'
    holder = new RunningProcess('unshare', ['--mount', 'sh', '-c', script, hidden], {}, 'pipe')
    await holder.waitFor(/mounted/)
    const full = `/proc/${holder.pid}/root${hidden}`
    const archive = inScratch('large')
    const large = inScratch('large-tree')
    mkdirSync(path.join(large, 'sbin'), { recursive: true })
    writeFileSync(path.join(large, 'sbin/init'), patterned(6 << 20))
    writeOciLayout(archive, [layerOf(large)], ['tar'])
    const whole = imported(archive)
    expect(vdisk('init', '--store', full).status).toBe(0)
    const words = ['import', archive, '--store', full, '--name', 'x', '--no-boot-files', '--size', '64M']
    const failed = vdisk(...words)
    expect([failed.status, failed.stderr]).toEqual([
      1,
      expect.stringMatching(/is full\. Free some space and continue with/),
    ])
    const id = /--resume (\S+),/.exec(failed.stderr)?.[1] ?? ''
    run('nsenter', '-t', String(holder.pid), '-m', 'mount', '-o', 'remount,size=64m', hidden)
    expect(vdisk('import', '--store', full, '--resume', id)).toMatchObject({ status: 0, stderr: '' })
    const rootOf = (place: string, version: string) =>
      JSON.parse(vdisk('show', '--json', '--store', place, '--version', version).stdout).manifest.root
    expect(rootOf(full, id)).toBe(rootOf(store, whole))
  })
})
