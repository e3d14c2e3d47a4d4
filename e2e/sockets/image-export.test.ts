import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { digestByLibvhdi, vhdiMissing } from '../lib/images/vhdi-disk.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const qemuMissing = existsSync('/usr/bin/qemu-img') ? undefined : 'not installed: qemu-utils'
const because = (missing: string | undefined) => (missing ? ` (${missing})` : '')
const mib = 1 << 20
const gib = 1024 * mib
const formats = ['qcow2', 'vhdx'] as const

function inScratch(name: string): string {
  return path.join(scratch.path, name)
}

const store = inScratch('store')

interface Made {
  disk: string
  version: string
  root: string
}

function importDisk(disk: string): Made {
  const lines = vdisk('import', disk, '--name', 'x', '--no-boot-files', '--json')
  const { version, manifest } = JSON.parse(lines.trim().split('\n').at(-1) ?? '{}')
  return { disk, version, root: manifest.root }
}

function vdisk(command: string, ...args: string[]): string {
  return execFileSync(edgeProgram, ['vdisk', command, ...args, '--store', store], { encoding: 'utf8' })
}

function makeDisk(name: string, size: number, places: number[], part: number): Made {
  const disk = inScratch(name)
  const fd = openSync(disk, 'w')
  ftruncateSync(fd, size)
  for (const at of places) writeSync(fd, patterned(Math.min(part, size - at)), 0, Math.min(part, size - at), at)
  closeSync(fd)
  return importDisk(disk)
}

function digest(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

function exported(made: Made, format: string, name: string): string {
  const file = inScratch(name)
  const said = vdisk('export', file, '--version', made.version, '--format', format, '--force')
  expect(said).toContain(`exported ${made.version} as ${format}: `)
  return file
}

let small: Made
/** Has several tables of either format. */
let large: Made
const largePlaces = [0, 512 * mib - 4096, 4 * gib - 512, 8 * gib + 4096, 13 * gib - 4096]

beforeAll(() => {
  execFileSync(edgeProgram, ['vdisk', 'init', '--store', store])
  const size = 40 * mib + 5 * 512
  small = makeDisk('small.raw', size, [0, 3 * mib + 4096, 17 * mib + 512, 39 * mib], mib + 5 * 512)
  large = makeDisk('large.raw', 13 * gib, largePlaces, 4096)
})

describe.skipIf(qemuMissing)(`QEMU reads the disk of an exported image${because(qemuMissing)}`, () => {
  function expectWhole(format: string, file: string): void {
    const checked = spawnSync('qemu-img', ['check', '-f', format, file], { encoding: 'utf8' })
    expect(checked.stderr + checked.stdout).toContain('No errors were found on the image.')
  }

  test.each(formats)('%s', (format) => {
    const file = exported(small, format, `checked.${format}`)
    expectWhole(format, file)
    const compared = spawnSync('qemu-img', ['compare', '-f', 'raw', '-F', format, small.disk, file], {
      encoding: 'utf8',
    })
    expect(compared.stdout + compared.stderr).toContain('Images are identical.')
  })

  test.each(formats)('%s, with several tables', (format) => {
    const file = exported(large, format, `large.${format}`)
    expectWhole(format, file)
    // Parts alone: QEMU reads all of a VHDX's zeros.
    for (const place of largePlaces) {
      const [from, to] = [Math.floor(place / mib) - 1, Math.floor((place + 4095) / mib) + 1]
      for (let part = Math.max(from, 0); part <= Math.min(to, 13 * 1024 - 1); part++)
        expect(partOf(format, file, part)).toBe(partOf('raw', large.disk, part))
    }
  })

  /** The digest of a MiB of the disk in an image. */
  function partOf(format: string, file: string, index: number): string {
    const part = inScratch('part.raw')
    const args = ['dd', '-f', format, '-O', 'raw', `bs=${mib}`, `skip=${index}`, `count=${index + 1}`]
    execFileSync('qemu-img', [...args, `if=${file}`, `of=${part}`], { stdio: 'ignore' })
    return digest(part)
  }

  test('and writes to it', () => {
    const file = exported(small, 'qcow2', 'written.qcow2')
    execFileSync('qemu-io', ['-f', 'qcow2', '-c', 'write -P 7 1M 3M', file], { stdio: 'ignore' })
    const checked = spawnSync('qemu-img', ['check', '-f', 'qcow2', file], { encoding: 'utf8' })
    expect(checked.stdout + checked.stderr).toContain('No errors were found on the image.')
  })
})

test.skipIf(vhdiMissing)(`libvhdi reads the disk of an exported VHDX${because(vhdiMissing)}`, () => {
  expect(digestByLibvhdi(exported(small, 'vhdx', 'vhdi.vhdx'))).toBe(digest(small.disk))
})

describe('an exported image', () => {
  test.each(formats)('in %s is imported as the same bytes, and is the same file each time', (format) => {
    for (const made of [small, large])
      expect(importDisk(exported(made, format, `again.${format}`)).root).toBe(made.root)
    const [first, second] = ['first', 'second'].map((name) => exported(small, format, `${name}.${format}`))
    expect(digest(first ?? '')).toBe(digest(second ?? ''))
  })

  test.each(['raw', ...formats])('in %s takes the space of its data alone', (format) => {
    const places = Array.from({ length: 200 }, (_, index) => index * mib + 8192)
    const sparse = makeDisk('sparse.raw', 256 * mib, places, 4096)
    const file = inScratch(`sparse.${format}.out`)
    const lines = vdisk('export', file, '--version', sparse.version, '--format', format, '--json').trim().split('\n')
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
      exported: sparse.version,
      format,
      sizeBytes: 256 * mib,
      writtenBytes: 200 * 4096,
    })
    // And its tables.
    expect(statSync(file).blocks * 512).toBeLessThan(4 * mib)
  })
})

describe('an export that cannot be done', () => {
  function refusal(...args: string[]): string {
    const all = ['vdisk', 'export', '--store', store, '--version', small.version, ...args]
    const { status, stderr } = spawnSync(edgeProgram, all, { encoding: 'utf8' })
    expect(status, stderr).toBe(1)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    return stderr
  }

  test('is refused with what to do instead', () => {
    const there = inScratch('there')
    writeFileSync(there, 'mine')
    expect(refusal(there, '--format', 'qcow2')).toMatch(/there already exists; --force overwrites it\./)
    expect(readFileSync(there, 'utf8')).toBe('mine')
    expect(refusal(inScratch('x'), '--format', 'vmdk')).toMatch(/--format is raw, qcow2 or vhdx, not 'vmdk'\./)
    expect(refusal('-', '--format', 'vhdx')).toMatch(/cannot be written to standard output.*name a file\./)
    expect(refusal(inScratch('x'), '--format', 'vhdx', '--resume')).toMatch(/--resume is for raw images/)
    writeFileSync(inScratch('begun.part'), '')
    expect(refusal(inScratch('begun'), '--format', 'qcow2')).toMatch(/is running\. To start again, remove it\./)
  })

  test.each(formats)('for a full disk leaves no %s image', (format) => {
    const file = inScratch(`full.${format}`)
    // A limit of the size of files is reported like a full disk, once its signal is ignored.
    const script = 'trap \'\' XFSZ; ulimit -f 5000; exec "$@"'
    const args = ['vdisk', 'export', file, '--store', store, '--version', small.version, '--format', format]
    const { status, stderr } = spawnSync('sh', ['-c', script, 'sh', edgeProgram, ...args], { encoding: 'utf8' })
    expect(status, stderr).toBe(1)
    expect(stderr).toMatch(/has no space left for the image; free some, or choose another disk\.\n$/)
    expect([existsSync(file), existsSync(`${file}.part`)]).toEqual([false, false])
  })
})

describe('exports of jobs', () => {
  const exported = (place: string, version: string, format: string): string => {
    const args = [
      'export',
      '--in-store',
      '--again',
      '--version',
      version,
      '--format',
      format,
      '--json',
      '--store',
      place,
    ]
    const said = execFileSync(edgeProgram, ['vdisk', ...args], { encoding: 'utf8' })
    return path.join(place, JSON.parse(said.trim().split('\n').at(-1) ?? '{}').file)
  }
  const daysAgo = (file: string, days: number) => {
    const then = new Date(Date.now() - days * 24 * 3600 * 1000)
    utimesSync(file, then, then)
  }

  test('are removed after a week, by a garbage collection or the next export', () => {
    const { version } = makeDisk('aged.raw', 2 * mib, [0], 65536)
    const [old, recent] = ['raw', 'qcow2'].map((format) => exported(store, version, format)) as [string, string]
    // What somebody has put there is not theirs.
    const others = ['debian.raw', 'copy.qcow2.part'].map((name) => path.join(path.dirname(old), name))
    for (const other of others) {
      writeFileSync(other, 'x')
      daysAgo(other, 400)
    }
    daysAgo(old, 6.9)
    vdisk('gc')
    expect([old, recent].map((file) => existsSync(file))).toEqual([true, true])
    daysAgo(old, 7.1)
    vdisk('gc')
    expect([old, recent].map((file) => existsSync(file))).toEqual([false, true])
    daysAgo(recent, 7.1)
    exported(store, version, 'vhdx')
    expect(existsSync(recent)).toBe(false)
    expect(others.map((file) => existsSync(file))).toEqual([true, true])
  })

  test.skipIf(process.getuid?.() !== 0)('take at most a quarter of the disk: the oldest go', async () => {
    const hidden = inScratch('small')
    mkdirSync(hidden)
    const script = 'mount -t tmpfs -o size=64m tmpfs "$0" && echo mounted && exec cat'
    const holder = new RunningProcess('unshare', ['--mount', 'sh', '-c', script, hidden], {}, 'pipe')
    try {
      await holder.waitFor(/mounted/)
      const small = `/proc/${holder.pid}/root${hidden}`
      execFileSync(edgeProgram, ['vdisk', 'init', '--store', small])
      const disk = inScratch('quarter.raw')
      writeFileSync(disk, patterned(6 * mib))
      const args = ['vdisk', 'import', disk, '--name', 'x', '--no-boot-files', '--json', '--store', small]
      const said = execFileSync(edgeProgram, args, { encoding: 'utf8' })
      const { version } = JSON.parse(said.trim().split('\n').at(-1) ?? '{}')
      const files = ['raw', 'qcow2', 'vhdx'].map((format) => exported(small, version, format))
      for (const [index, file] of files.entries()) daysAgo(file, 3 - index)
      execFileSync(edgeProgram, ['vdisk', 'gc', '--store', small])
      expect(files.map((file) => existsSync(file))).toEqual([false, true, true])
    } finally {
      await holder.stop()
    }
  })
})
